package harness

import org.codehaus.groovy.ast.ClassNode
import org.codehaus.groovy.ast.CodeVisitorSupport
import org.codehaus.groovy.ast.expr.ClosureExpression
import org.codehaus.groovy.ast.expr.MethodCallExpression
import org.codehaus.groovy.ast.expr.TupleExpression
import org.codehaus.groovy.ast.stmt.BlockStatement
import org.codehaus.groovy.ast.stmt.ExpressionStatement
import org.codehaus.groovy.classgen.GeneratorContext
import org.codehaus.groovy.control.CompilePhase
import org.codehaus.groovy.control.SourceUnit
import org.codehaus.groovy.control.customizers.CompilationCustomizer

/** Refuses what Jenkins refuses before a declarative pipeline starts: in `steps` and in conditions of `post` stand calls of steps alone. */
class PlainSteps extends CompilationCustomizer {
  private static final Set<String> WITH_STEPS = (['steps', 'withCredentials', 'withEnv', 'dir'] + Declarative.CONDITIONS) as Set

  PlainSteps() {
    super(CompilePhase.CONVERSION)
  }

  @Override
  void call(SourceUnit source, GeneratorContext context, ClassNode node) {
    source.AST.statementBlock.visit(new CodeVisitorSupport() {
      @Override
      void visitMethodCallExpression(MethodCallExpression call) {
        // Anything may stand in `script`.
        if (call.methodAsString == 'script') { return }
        if (call.methodAsString in WITH_STEPS) { plain(call) }
        super.visitMethodCallExpression(call)
      }
    })
  }

  private static void plain(MethodCallExpression call) {
    if (!(call.arguments instanceof TupleExpression)) { return }
    (call.arguments as TupleExpression).expressions.findAll { argument -> argument instanceof ClosureExpression }.each { argument ->
      ((argument as ClosureExpression).code as BlockStatement).statements.each { statement ->
        boolean step = statement instanceof ExpressionStatement && statement.expression instanceof MethodCallExpression
        if (!step) { throw new HarnessError("line ${statement.lineNumber}: no step in ${call.methodAsString}: put it into script { }") }
      }
    }
  }
}
