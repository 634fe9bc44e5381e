/** The decision of the SPEC gate, on texts. */
import ts from 'typescript';

export interface TestFile {
  readonly file: string;
  readonly text: string;
}

export interface SpecReport {
  readonly rules: number;
  readonly citations: number;
  /** One sentence each: rules without a test, citations without a rule, rules given twice, rules without words. */
  readonly faults: readonly string[];
}

const ROW = /^\|\s*`?(?<id>[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*)`?\s*\|(?<rule>.*)\|\s*$/;
const CITATION = /\[([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*)\]/g;
const TEST_FUNCTIONS = new Set(['it', 'test', 'describe', 'suite']);
/** A test that does not run proves nothing. */
const NOT_RUN = new Set(['skip', 'todo']);

export function checkSpec(spec: string, tests: readonly TestFile[]): SpecReport {
  const faults: string[] = [];
  const rules = new Set<string>();
  for (const line of spec.split('\n')) {
    const { id, rule } = ROW.exec(line)?.groups ?? {};
    if (id === undefined) continue;
    if (rules.has(id)) faults.push(`${id} stands twice in SPEC.md; give each rule an id of its own`);
    if (rule?.trim() === '') faults.push(`${id} says nothing in SPEC.md; write the rule`);
    rules.add(id);
  }
  const cited = new Map<string, Set<string>>();
  let citations = 0;
  for (const { file, text } of tests) {
    for (const title of titlesOf(file, text)) {
      for (const [, id = ''] of title.matchAll(CITATION)) {
        citations++;
        const files = cited.get(id) ?? new Set();
        cited.set(id, files.add(file));
      }
    }
  }
  for (const id of rules)
    if (!cited.has(id)) faults.push(`${id} is cited by no test; put [${id}] into the title of the test that proves it`);
  for (const [id, files] of cited)
    if (!rules.has(id)) faults.push(`[${id}] is cited in ${[...files].join(', ')}, but is no rule of SPEC.md`);
  return { rules: rules.size, citations, faults };
}

/** Titles of tests and groups that run, in the order of the file. */
function titlesOf(file: string, text: string): string[] {
  const titles: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const names = calleeNames(node.expression);
      const [title] = node.arguments;
      if (names.some((name) => NOT_RUN.has(name)) && TEST_FUNCTIONS.has(names[0] ?? '')) return;
      if (title !== undefined && TEST_FUNCTIONS.has(names[0] ?? '') && isText(title)) titles.push(title.getText());
    }
    ts.forEachChild(node, visit);
  };
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  visit(source);
  return titles;
}

function isText(node: ts.Node): boolean {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

/** `it.each(rows)` is `it`, `each`. */
function calleeNames(node: ts.Expression): string[] {
  if (ts.isIdentifier(node)) return [node.text];
  if (ts.isPropertyAccessExpression(node)) return [...calleeNames(node.expression), node.name.text];
  if (ts.isCallExpression(node)) return calleeNames(node.expression);
  if (ts.isTaggedTemplateExpression(node)) return calleeNames(node.tag);
  return [];
}
