/** Results as Markdown. */
import type { CaseResult, Row } from './result.ts';

export function renderCase({ name, setup, rows }: CaseResult): string {
  return [
    `## ${name[0]?.toUpperCase() ?? ''}${name.slice(1)}`,
    '',
    `${setup[0]?.toUpperCase() ?? ''}${setup.slice(1)}.`,
    '',
    '| what | ours | against | ratio | target | met |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map(renderRow),
    '',
  ].join('\n');
}

function renderRow({ what, ours, against, ratio, target, isMet }: Row): string {
  const met = isMet === null ? '' : isMet ? 'yes' : '**no**';
  return `| ${what} | ${ours} | ${against} | ${ratio === null ? '' : ratio.toFixed(2)} | ${target} | ${met} |`;
}

export function renderPage(page: {
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly results: readonly CaseResult[];
}): string {
  return [
    `# Benchmarks, ${page.date}`,
    '',
    `- Commit: ${page.commit}`,
    `- Machine: ${page.machine}`,
    '- Made by: `npm run bench -- --write`',
    '',
    ...page.results.map(renderCase),
  ].join('\n');
}
