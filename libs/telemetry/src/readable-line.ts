/** A JSON log line as a person reads it: `12:00:00.000 WARN  event key=value`. */

const OWN_FIELDS = new Set(['level', 'time', 'event']);

/** Never throws: a line that is not JSON is passed on as it is. */
export function formatReadableLine(line: string): string {
  const fields = parseObject(line);
  if (fields === undefined) return line;
  const time = typeof fields['time'] === 'string' ? fields['time'].slice(11, 23) : '';
  const level = (typeof fields['level'] === 'string' ? fields['level'] : '').toUpperCase().padEnd(5);
  const event = typeof fields['event'] === 'string' ? fields['event'] : '';
  const words = [time, level, event];
  const stacks: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (OWN_FIELDS.has(name)) continue;
    const error = asError(value);
    if (error === undefined) {
      words.push(`${name}=${formatValue(value)}`);
      continue;
    }
    words.push(`${name}=${formatValue(error.message)}`);
    if (error.stack !== undefined && fields['level'] === 'error') stacks.push(indent(error.stack));
  }
  return `${words.join(' ')}\n${stacks.join('')}`;
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function asError(value: unknown): { readonly message: string; readonly stack?: string } | undefined {
  if (typeof value !== 'object' || value === null || !('message' in value) || !('type' in value)) return undefined;
  const { message } = value;
  if (typeof message !== 'string') return undefined;
  return 'stack' in value && typeof value.stack === 'string' ? { message, stack: value.stack } : { message };
}

/** Plain words as they are; whatever could be mistaken for another field or line is quoted. */
function formatValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return typeof value === 'string' && !/^[\w.:/@~+-]+$/.test(text) ? JSON.stringify(text) : text;
}

function indent(stack: string): string {
  return stack
    .split('\n')
    .map((row) => `    ${row}\n`)
    .join('');
}
