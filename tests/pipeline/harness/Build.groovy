package harness

import groovy.json.JsonOutput
import org.jenkinsci.plugins.workflow.steps.FlowInterruptedException

/** One build: what Jenkins would hand it, and what it did. */
class Build {
  /** From better to worse; a result only ever gets worse. */
  static final List<String> RESULTS = ['SUCCESS', 'UNSTABLE', 'FAILURE', 'NOT_BUILT', 'ABORTED']

  final Map scenario
  final File workspace
  /** The workspace, or what `dir` makes of it. */
  File folder
  /** What the build itself has set; nothing is SUCCESS. */
  String result
  /** What the end of the pipeline's program, or its being stopped, makes of it. */
  String flowResult = 'SUCCESS'
  String description
  Map params = [:]
  final Map<String, String> overrides = [:]
  final List<Map> scopes = []
  final List<String> timeouts = []
  final List<Map> steps = []
  final List<String> archived = []
  final List<String> secrets = []
  Map options = [:]
  Map asked
  String stage

  Build(Map scenario) {
    this.scenario = scenario
    workspace = new File(scenario.workspace as String)
    workspace.mkdirs()
    folder = workspace
  }

  void say(String line) {
    String masked = line
    secrets.each { secret -> masked = masked.replace(secret, '****') }
    println masked
    System.out.flush()
  }

  void worsen(String to) {
    if (!(to in RESULTS)) { throw new HarnessError("no result of Jenkins: ${to}") }
    if (result == null || RESULTS.indexOf(to) > RESULTS.indexOf(result)) { result = to }
  }

  /** Somebody stops the build: that is its result unless its program ends by an error of its own. */
  FlowInterruptedException stopped() {
    flowResult = 'ABORTED'
    new FlowInterruptedException('ABORTED', 'Aborted by somebody')
  }

  /** What a started program finds: the agent's, the build's, the parameters', `env.X = …`, then the blocks around it. */
  Map<String, String> environment() {
    Map build = scenario.build as Map
    Map<String, String> all = [:]
    all.putAll(scenario.environment as Map)
    all.putAll([
      BUILD_ID: "${build.number}" as String, BUILD_NUMBER: "${build.number}" as String, BUILD_URL: build.url as String,
      BUILD_TAG: "jenkins-job-${build.number}" as String, JOB_NAME: 'job', JOB_BASE_NAME: 'job', NODE_NAME: 'agent',
      EXECUTOR_NUMBER: '0', WORKSPACE: workspace.path, CI: 'true', JENKINS_SERVER_COOKIE: 'durable-test',
    ])
    // The first build of a job has no parameters yet, only their default values in `params`.
    if (scenario.parameters != null) { params.each { name, value -> all[name as String] = "${value}" as String } }
    all.putAll(overrides)
    if (stage != null) { all.STAGE_NAME = stage }
    scopes.each { scope -> all.putAll(scope) }
    all
  }

  void write() {
    Map outcome = [
      result: result, description: description, asked: asked, steps: steps, archived: archived, options: options.keySet() as List,
    ]
    new File(scenario.outcome as String).text = JsonOutput.prettyPrint(JsonOutput.toJson(outcome))
  }
}
