package harness

import hudson.AbortException
import java.nio.file.FileSystems
import java.nio.file.Files
import java.nio.file.StandardCopyOption
import java.util.concurrent.TimeUnit
import org.jenkinsci.plugins.workflow.steps.FlowInterruptedException

/** The script that a Jenkinsfile becomes: the steps that it may call, and `params`, `env` and `currentBuild`. */
abstract class Steps extends Script {
  Build getBuild() { getBinding().getVariable(' build') as Build }

  static Map only(String step, Map given, String... known) {
    List unknown = given.keySet().findAll { name -> !(name in known) } as List
    if (unknown) { throw new HarnessError("the harness knows no ${unknown} of ${step}") }
    given
  }

  /** A closure of the pipeline. */
  Object run(Closure body) {
    body.delegate = this
    body.resolveStrategy = Closure.DELEGATE_FIRST
    body.call()
  }

  void inTimeout(Map how, Closure body) {
    if (how == null) {
      body.call()
      return
    }
    build.say("Timeout set to expire in ${how.time} ${how.unit}")
    build.timeouts << ("${how.time} ${how.unit}" as String)
    try {
      body.call()
    } finally {
      build.timeouts.removeLast()
    }
  }

  private Object within(Map scope, Closure body) {
    build.scopes << scope
    try {
      return body.call()
    } finally {
      build.scopes.removeLast()
    }
  }

  // --- what is there beside steps

  void pipeline(Closure closure) { new Declarative(build, this).run(closure) }
  Map getParams() { build.params }
  Environment getEnv() { new Environment(build) }
  CurrentBuild getCurrentBuild() { new CurrentBuild(build) }

  @Override
  Object getProperty(String name) {
    switch (name) {
      case 'params': return getParams()
      case 'env': return getEnv()
      case 'currentBuild': return getCurrentBuild()
      case 'build': return getBuild()
      default: throw new HarnessError("the harness knows no ${name}")
    }
  }

  Object methodMissing(String name, Object arguments) {
    throw new HarnessError("the harness knows no step ${name}")
  }

  // --- steps

  Object script(Closure body) { body.call() }

  void echo(String message) { build.say(message) }

  void error(String message) { throw new AbortException(message) }

  void unstable(String message) {
    build.say("WARNING: ${message}")
    build.worsen('UNSTABLE')
  }

  String readFile(String file) {
    File found = new File(build.folder, file)
    if (!found.exists()) { throw new java.nio.file.NoSuchFileException(found.path) }
    found.text
  }

  boolean fileExists(String file) { new File(build.folder, file).exists() }

  Object dir(String name, Closure body) {
    File before = build.folder
    build.folder = new File(before, name)
    try {
      return body.call()
    } finally {
      build.folder = before
    }
  }

  void deleteDir() { build.folder.deleteDir() }

  Object withEnv(List pairs, Closure body) {
    Map scope = pairs.collectEntries { pair ->
      String text = pair
      int at = text.indexOf('=')
      if (at < 1) { throw new HarnessError("withEnv takes NAME=VALUE, not ${text}") }
      [text.substring(0, at), text.substring(at + 1)]
    }
    within(scope, body)
  }

  Map usernamePassword(Map how) {
    only('usernamePassword', how, 'credentialsId', 'usernameVariable', 'passwordVariable') + [kind: 'usernamePassword']
  }

  Map file(Map how) { only('file', how, 'credentialsId', 'variable') + [kind: 'file'] }

  Object withCredentials(List bindings, Closure body) {
    Map scope = [' credentials': bindings*.credentialsId]
    bindings.each { binding ->
      Map held = build.scenario.credentials[binding.credentialsId] as Map
      if (held == null || held.kind != binding.kind) {
        throw new AbortException("Could not find credentials entry with ID '${binding.credentialsId}'")
      }
      if (binding.kind == 'file') {
        scope[binding.variable] = held.file
      } else {
        scope[binding.usernameVariable] = held.username
        scope[binding.passwordVariable] = held.password
        build.secrets << (held.password as String)
      }
    }
    within(scope, body)
  }

  /** Asks as the scenario answers; `empty` is an answer that was sent to the address `proceedEmpty`, which hands no parameter on. */
  Object input(Map how) {
    only('input', how, 'message', 'ok', 'submitter', 'submitterParameter')
    build.asked = how + [timeouts: build.timeouts.collect()]
    build.say(how.message as String)
    build.say("${how.ok} or Abort")
    Object answer = build.scenario.answer
    if (answer instanceof Map) {
      List may = (how.submitter as String).split(',') as List
      if (!may.any { name -> name == answer.user || name in answer.groups }) {
        throw new HarnessError("${answer.user} may not answer, only ${may}")
      }
      build.say("Approved by ${answer.user}")
      return how.submitterParameter && !answer.empty ? answer.user : null
    }
    switch (answer) {
      case 'decline': throw new FlowInterruptedException('ABORTED', 'Rejected by somebody')
      case 'stop': throw build.stopped()
      case 'timeout':
        if (!build.timeouts) { throw new HarnessError('nothing limits the time of this question') }
        build.say('Cancelling nested steps due to timeout')
        throw new FlowInterruptedException('ABORTED', 'Timeout has been exceeded')
      default: throw new HarnessError("asked, and the scenario has no answer: ${how.message}")
    }
  }

  Object sh(String script) { sh(script: script) }

  Object sh(Map how) {
    only('sh', how, 'script', 'label', 'returnStatus')
    Map environment = build.environment()
    List credentials = build.scopes*.get(' credentials').findAll().flatten()
    environment.remove(' credentials')
    build.say("[Pipeline] sh${how.label ? " (${how.label})" : ''}")
    File script = File.createTempFile('script', '.sh', new File(environment.TMPDIR as String))
    script.text = how.script
    Map told = [stage: build.stage, script: how.script, label: how.label, timeouts: build.timeouts.collect(), credentials: credentials]
    build.steps << told
    boolean interrupted = false
    try {
      interrupted = follow(script, environment, told)
    } finally {
      script.delete()
    }
    int status = told.status as int
    // What ends well although it was told to stop has ended well.
    if (status == 0 || (how.returnStatus && !interrupted)) { return how.returnStatus ? status : null }
    if (interrupted) {
      build.say("script returned exit code ${status}")
      throw new FlowInterruptedException('ABORTED', 'Aborted by somebody')
    }
    throw new AbortException("script returned exit code ${status}")
  }

  /** Runs it, shows what it says, and stops it, with all that it has started, where the scenario says so. */
  private boolean follow(File script, Map environment, Map told) {
    ProcessBuilder builder = new ProcessBuilder('sh', '-xe', script.path).directory(build.folder).redirectErrorStream(true)
    builder.environment().clear()
    environment.each { name, value -> builder.environment().put(name as String, value as String) }
    builder.redirectInput(new File('/dev/null'))
    Process process = builder.start()
    boolean interrupted = false
    process.inputStream.eachLine { line ->
      build.say(line)
      String at = build.scenario.stop_at
      if (!interrupted && at && line.contains(at)) {
        interrupted = true
        build.stopped()
        build.say('Sending interrupt signal to process')
        List<ProcessHandle> all = process.descendants().toList() + process.toHandle()
        all.each { one -> one.destroy() }
      }
    }
    if (!process.waitFor(300, TimeUnit.SECONDS)) { throw new HarnessError("${told.label ?: told.script} does not end") }
    told.status = process.exitValue()
    interrupted
  }

  void archiveArtifacts(Map how) {
    only('archiveArtifacts', how, 'artifacts', 'allowEmptyArchive')
    File archive = new File(build.scenario.archive as String)
    List<String> found = []
    (how.artifacts as String).split(',').each { pattern ->
      def matcher = FileSystems.default.getPathMatcher("glob:${pattern.trim()}")
      build.folder.eachFileRecurse { file ->
        def path = build.folder.toPath().relativize(file.toPath())
        if (file.file && matcher.matches(path)) { found << path.toString() }
      }
    }
    if (!found && !how.allowEmptyArchive) { throw new AbortException("No artifacts found that match \"${how.artifacts}\"") }
    found.each { name ->
      File copy = new File(archive, name)
      copy.parentFile.mkdirs()
      Files.copy(new File(build.folder, name).toPath(), copy.toPath(), StandardCopyOption.REPLACE_EXISTING)
      if (!(name in build.archived)) { build.archived << name }
    }
  }
}

/** `env`. */
class Environment {
  private final Build build

  Environment(Build build) { this.build = build }

  Object propertyMissing(String name) { build.environment()[name] }

  void propertyMissing(String name, Object value) { build.overrides[name] = "${value}" as String }
}

/** `currentBuild`. */
class CurrentBuild {
  private final Build build

  CurrentBuild(Build build) { this.build = build }

  void setResult(String result) { build.worsen(result) }
  String getResult() { build.result }
  String getCurrentResult() { build.result ?: 'SUCCESS' }
  void setDescription(String description) { build.description = description }
  String getDescription() { build.description }

  List getBuildCauses() {
    Map cause = build.scenario.cause as Map
    cause == null ? [] : [cause]
  }

  List getBuildCauses(String kind) { buildCauses.findAll { cause -> cause._class == kind } }

  Object propertyMissing(String name) { throw new HarnessError("the harness knows no currentBuild.${name}") }

  Object methodMissing(String name, Object arguments) { throw new HarnessError("the harness knows no currentBuild.${name}") }
}
