/** Finds what product code waits for by itself: whatever makes a promise out of something that may never come. */
import ts from 'typescript';

/** How many waits the text of a module holds. */
export function countWaits(file: string, text: string): number {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  let count = 0;
  const visit = (node: ts.Node): void => {
    if (isWait(node)) count++;
    ts.forEachChild(node, visit);
  };
  visit(source);
  return count;
}

function isWait(node: ts.Node): boolean {
  if (ts.isNewExpression(node)) return node.expression.getText() === 'Promise';
  if (ts.isForOfStatement(node)) return node.awaitModifier !== undefined;
  if (!ts.isCallExpression(node)) return false;
  const { expression } = node;
  if (expression.kind === ts.SyntaxKind.ImportKeyword) return true;
  return ['Promise.withResolvers', 'fetch', 'globalThis.fetch'].includes(expression.getText());
}
