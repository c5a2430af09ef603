package hudson

/** Ends a build with a sentence and no stack. */
class AbortException extends IOException {
  AbortException(String message) {
    super(message)
  }
}
