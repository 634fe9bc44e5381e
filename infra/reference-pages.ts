/** The pages of docs/reference that are made from tables, as prettier formats them. */
import { renderMetricsPage } from '@throughline/telemetry/metrics-page';
import { format } from 'prettier';
import { renderCommandsPage } from 'throughline/commands-page';
import { renderConfigPage } from 'throughline/config-page';
import { renderDoctorPage } from 'throughline/doctor-codes';
import { renderClientFaultsPage } from './client-faults-page.ts';

export interface ReferencePage {
  readonly file: URL;
  render(): Promise<string>;
}

const page = (name: string, text: () => string): ReferencePage => ({
  file: new URL(`../docs/reference/${name}`, import.meta.url),
  render: () => format(text(), { parser: 'markdown', printWidth: 120, singleQuote: true }),
});

export const REFERENCE_PAGES: readonly ReferencePage[] = [
  page('client-faults.md', renderClientFaultsPage),
  page('commands.md', renderCommandsPage),
  page('config.md', renderConfigPage),
  page('doctor.md', renderDoctorPage),
  page('metrics.md', renderMetricsPage),
];
