/** The environment of a stdio server: what any program needs and what was configured, not the secrets of this process. */

/** The variables that the official SDKs pass on, and those for language, time zone and temporary files. */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

export function childEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  configured: Readonly<Record<string, string>>,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = own[name];
    // A value that starts with () is an exported shell function, not data.
    if (value !== undefined && !value.startsWith('()')) environment[name] = value;
  }
  return { ...environment, ...configured };
}
