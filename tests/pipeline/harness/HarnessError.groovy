package harness

/** The harness cannot or must not go on. No Exception, so no pipeline can catch it. */
class HarnessError extends Error {
  HarnessError(String message) {
    super(message)
  }
}
