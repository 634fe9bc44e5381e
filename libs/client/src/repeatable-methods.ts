/** Requests that change nothing: posted twice they do no harm, whatever the server. SPEC: CLIENT-REPEAT. */
const WITHOUT_EFFECTS: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'logging/setLevel',
  'completion/complete',
]);

export function isWithoutEffects(method: string): boolean {
  return WITHOUT_EFFECTS.has(method);
}
