/** What `npm audit` says of the packages that are shipped. Pure: whoever runs it gives the output. */

export type AuditVerdict =
  /** No advisory of the levels that count. */
  | { readonly outcome: 'clean' }
  | { readonly outcome: 'vulnerable'; readonly packages: readonly string[] }
  /** Nobody was there to ask: no network, or a mirror without advisories. */
  | { readonly outcome: 'not-asked'; readonly why: string };

const LEVELS = ['high', 'critical'] as const;

/** @param output of `npm audit --omit=dev --audit-level=high --json`. */
export function judgeAudit(output: string): AuditVerdict {
  let report: unknown;
  try {
    report = JSON.parse(output);
  } catch {
    return { outcome: 'not-asked', why: 'npm audit gave no report' };
  }
  const { vulnerabilities, metadata, message, error } = (report ?? {}) as Report;
  if (vulnerabilities === undefined || metadata === undefined)
    return { outcome: 'not-asked', why: [message, error?.summary].find(Boolean) ?? 'npm audit gave no report' };
  const packages = Object.entries(vulnerabilities)
    .filter(([, { severity }]) => LEVELS.some((level) => level === severity))
    .map(([name, { severity }]) => `${name} (${severity ?? ''})`);
  return packages.length === 0 ? { outcome: 'clean' } : { outcome: 'vulnerable', packages };
}

interface Report {
  readonly vulnerabilities?: Readonly<Record<string, { readonly severity?: string }>>;
  readonly metadata?: object;
  readonly message?: string;
  readonly error?: { readonly summary?: string };
}
