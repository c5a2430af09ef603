// Runs a Jenkinsfile as one build of Jenkins would: jenkins.groovy JENKINSFILE SCENARIO.json
// The console goes to standard output, what came of the build into the scenario's outcome file. What the harness does not know ends it
// with code 70. The order of things is that of Jenkins' workflow-cps, pipeline-model-definition, pipeline-input-step and
// workflow-basic-steps plugins.
import groovy.json.JsonSlurper
import harness.Build
import harness.Declarative
import harness.HarnessError
import harness.PlainSteps
import harness.Steps
import hudson.AbortException
import org.codehaus.groovy.control.CompilerConfiguration
import org.jenkinsci.plugins.workflow.steps.FlowInterruptedException

Build build = new Build(new JsonSlurper().parse(new File(args[1])) as Map)
CompilerConfiguration configuration = new CompilerConfiguration(scriptBaseClass: Steps.name)
configuration.addCompilationCustomizers(new PlainSteps())
Binding binding = new Binding([' build': build])
try {
  Script script = new GroovyShell(Steps.classLoader, binding, configuration).parse(new File(args[0]))
  Exception ended = null
  try {
    script.run()
  } catch (Exception error) {
    ended = error
    build.flowResult = Declarative.resultOf(error)
  }
  build.worsen(build.flowResult)
  if (ended instanceof AbortException) {
    build.say("ERROR: ${ended.message}")
  } else if (ended instanceof FlowInterruptedException) {
    build.say(ended.message)
  } else if (ended != null) {
    build.say(ended.toString())
    ended.printStackTrace(System.out)
  }
  build.say("Finished: ${build.result}")
  build.write()
} catch (HarnessError error) {
  System.err.println("harness: ${error.message}")
  System.exit(70)
}
