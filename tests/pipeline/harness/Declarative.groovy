package harness

import org.jenkinsci.plugins.workflow.steps.FlowInterruptedException

/** A block of the declarative form: it knows its own words alone. */
abstract class Block {
  final Set<String> seen = []

  static Object read(Block block, Closure closure) {
    closure.delegate = block
    closure.resolveStrategy = Closure.DELEGATE_ONLY
    closure.call()
    block
  }

  void once(String word) {
    if (!seen.add(word)) { throw new HarnessError("${word} stands twice in one block") }
  }

  Object methodMissing(String name, Object arguments) {
    throw new HarnessError("the harness knows no ${name} in a ${getClass().simpleName}")
  }

  Object propertyMissing(String name) {
    throw new HarnessError("the harness knows no ${name} in a ${getClass().simpleName}")
  }
}

class AgentBlock extends Block {
  String wanted
  void label(String wanted) { once('label'); this.wanted = wanted }
}

class OptionsBlock extends Block {
  boolean ofStage
  Map found = [:]

  void disableConcurrentBuilds(Map how = [:]) { ofPipeline('disableConcurrentBuilds', how) }
  void disableRestartFromStage() { ofPipeline('disableRestartFromStage', [:]) }
  void timeout(Map how) { once('timeout'); found.timeout = Steps.only('timeout', how, 'time', 'unit') }

  private void ofPipeline(String name, Map how) {
    if (ofStage) { throw new HarnessError("${name} is no option of a stage") }
    once(name)
    found[name] = how
  }
}

class ParametersBlock extends Block {
  Map declared = [:]

  void string(Map how) {
    Steps.only('string', how, 'name', 'description', 'defaultValue', 'trim')
    declare(how, how.defaultValue ?: '')
  }

  void booleanParam(Map how) {
    Steps.only('booleanParam', how, 'name', 'description', 'defaultValue')
    declare(how, how.defaultValue ?: false)
  }

  private void declare(Map how, Object value) {
    once(how.name as String)
    declared[how.name] = [value: value, trim: how.trim ?: false]
  }
}

class WhenBlock extends Block {
  Closure condition
  void expression(Closure condition) { once('expression'); this.condition = condition }
}

class PostBlock extends Block {
  static final Map<String, String> OF_RESULT = [
    aborted: 'ABORTED', failure: 'FAILURE', success: 'SUCCESS', unstable: 'UNSTABLE', notBuilt: 'NOT_BUILT',
  ]
  Map<String, Closure> conditions = [:]

  @Override
  Object methodMissing(String name, Object arguments) {
    Object[] given = arguments as Object[]
    if (!(name in Declarative.CONDITIONS) || given.length != 1 || !(given[0] instanceof Closure)) {
      throw new HarnessError("the harness knows no ${name} in a post block")
    }
    once(name)
    conditions[name] = given[0] as Closure
    null
  }

  static boolean holds(String name, String result) {
    if (name in ['always', 'cleanup']) { return true }
    name == 'unsuccessful' ? result != 'SUCCESS' : OF_RESULT[name] == result
  }
}

class StageBlock extends Block {
  String name
  Closure body
  WhenBlock condition
  PostBlock after
  Map options = [:]

  void steps(Closure body) { once('steps'); this.body = body }
  void when(Closure closure) { once('when'); condition = read(new WhenBlock(), closure) as WhenBlock }
  void post(Closure closure) { once('post'); after = read(new PostBlock(), closure) as PostBlock }
  void options(Closure closure) {
    once('options')
    options = (read(new OptionsBlock(ofStage: true), closure) as OptionsBlock).found
  }
}

class StagesBlock extends Block {
  List<StageBlock> all = []

  void stage(String name, Closure closure) {
    once(name)
    StageBlock stage = read(new StageBlock(name: name), closure) as StageBlock
    if (stage.body == null) { throw new HarnessError("the stage ${name} has no steps") }
    all << stage
  }
}

class PipelineBlock extends Block {
  AgentBlock where
  List<StageBlock> all
  PostBlock after
  Map options = [:]
  Map declared = [:]

  void agent(Closure closure) { once('agent'); where = read(new AgentBlock(), closure) as AgentBlock }
  void options(Closure closure) { once('options'); options = (read(new OptionsBlock(), closure) as OptionsBlock).found }
  void parameters(Closure closure) {
    once('parameters')
    declared = (read(new ParametersBlock(), closure) as ParametersBlock).declared
  }
  void stages(Closure closure) { once('stages'); all = (read(new StagesBlock(), closure) as StagesBlock).all }
  void post(Closure closure) { once('post'); after = read(new PostBlock(), closure) as PostBlock }
}

/** Carries a pipeline out, in the order and with the results of Jenkins' own interpreter of the declarative form. */
class Declarative {
  /** Those of `post`, in the order in which they are looked at. */
  static final List<String> CONDITIONS = [
    'always', 'aborted', 'failure', 'success', 'unstable', 'unsuccessful', 'notBuilt', 'cleanup',
  ]

  final Build build
  final Steps script
  private Exception first

  Declarative(Build build, Steps script) {
    this.build = build
    this.script = script
  }

  void run(Closure closure) {
    PipelineBlock pipeline = Block.read(new PipelineBlock(), closure) as PipelineBlock
    if (pipeline.where == null || !pipeline.all) { throw new HarnessError('a pipeline needs an agent and stages') }
    if (!(pipeline.where.wanted in build.scenario.labels)) { throw new HarnessError("no agent has the label ${pipeline.where.wanted}") }
    if (pipeline.options.timeout) { throw new HarnessError('the harness knows no timeout of a whole pipeline') }
    build.options = pipeline.options
    build.params = parameters(pipeline.declared).asImmutable()
    pipeline.all.each { stage -> evaluate(stage) }
    build.stage = 'Declarative: Post Actions'
    after(pipeline.after)
    build.stage = null
    if (first != null) { throw first }
  }

  private Map parameters(Map declared) {
    Map given = build.scenario.parameters as Map ?: [:]
    given.keySet().each { name ->
      if (!(name in declared.keySet())) { throw new HarnessError("the job declares no parameter ${name}") }
    }
    declared.collectEntries { name, how ->
      Object value = given.containsKey(name) ? given[name] : how.value
      [name, how.trim ? value.trim() : value]
    }
  }

  private void evaluate(StageBlock stage) {
    build.stage = stage.name
    build.say("[Pipeline] { (${stage.name})")
    if (first != null) {
      build.say("Stage \"${stage.name}\" skipped due to earlier failure(s)")
      return
    }
    Exception failed = attempt {
      script.inTimeout(stage.options.timeout as Map) {
        if (stage.condition != null && !script.run(stage.condition.condition)) {
          build.say("Stage \"${stage.name}\" skipped due to when conditional")
          return
        }
        Exception inside = attempt { script.run(stage.body) }
        inside = conditions(stage.after, inside)
        if (inside != null) { throw inside }
      }
    }
    first = first ?: failed
  }

  private void after(PostBlock post) {
    first = conditions(post, first)
  }

  /** The conditions of a post block that hold, and the first error so far. */
  private Exception conditions(PostBlock post, Exception error) {
    Exception found = error
    CONDITIONS.each { name ->
      Closure body = post?.conditions?.get(name)
      String own = build.result
      String seen = combined(found)
      if (body != null && PostBlock.holds(name, seen)) {
        build.result = seen
        Exception failed = attempt { script.run(body) }
        if (failed != null) { build.say("Error when executing ${name} post condition: ${failed}") }
        found = found ?: failed
        // What a condition sees is not the build's own result, unless it makes it worse.
        if (build.result == seen && seen != own) { build.result = own }
      }
    }
    found
  }

  private String combined(Exception error) {
    List<String> all = [build.result ?: 'SUCCESS', build.flowResult, error == null ? 'SUCCESS' : resultOf(error)]
    all.max { one -> Build.RESULTS.indexOf(one) }
  }

  static String resultOf(Exception error) {
    error instanceof FlowInterruptedException ? error.result : 'FAILURE'
  }

  private static Exception attempt(Closure what) {
    try {
      what()
      return null
    } catch (Exception error) {
      return error
    }
  }
}
