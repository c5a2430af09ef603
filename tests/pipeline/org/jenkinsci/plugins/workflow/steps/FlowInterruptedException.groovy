package org.jenkinsci.plugins.workflow.steps

/** A step was interrupted: declined, stopped or out of time. */
class FlowInterruptedException extends InterruptedException {
  final String result

  FlowInterruptedException(String result, String why) {
    super(why)
    this.result = result
  }
}
