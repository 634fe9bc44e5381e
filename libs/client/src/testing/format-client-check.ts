/** The verdicts of a check as a table that people read. Pure. */
import type { ClientCheckReport } from './client-check.ts';

/** A Markdown table: a row a fault, a column a dialect; what is not right is in bold. */
export function formatClientCheck({ runs }: ClientCheckReport): string {
  const dialects = [...new Set(runs.map(({ dialect }) => dialect))];
  const faults = [...new Set(runs.map(({ fault }) => fault))];
  const cell = (fault: string, dialect: string): string => {
    const run = runs.find((candidate) => candidate.fault === fault && candidate.dialect === dialect);
    if (run === undefined) return '';
    const text = run.wasShown ? run.verdict : `${run.verdict} (fault not met)`;
    return run.isRight ? text : `**${text}**`;
  };
  const lines = [
    `| fault | ${dialects.join(' | ')} |`,
    `| --- |${' --- |'.repeat(dialects.length)}`,
    ...faults.map((fault) => `| ${fault} | ${dialects.map((dialect) => cell(fault, dialect)).join(' | ')} |`),
  ];
  return lines.join('\n');
}
