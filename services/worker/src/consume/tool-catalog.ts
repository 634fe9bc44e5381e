/**
 * What the tools of one server say of their effects: learned from the answers to `tools/list` that pass by. Sessions may
 * be shown different tools under one name: the more cautious word counts until the list changes. SPEC: WRK-EFFECTS.
 */
import type { Effects } from '@throughline/history';
import type { JsonRpcRequest } from '@throughline/protocol';

export interface ToolEffects {
  readonly readOnly: boolean;
  readonly idempotent: boolean;
}

const MAX_TOOLS = 10_000;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export class ToolCatalog {
  readonly #tools = new Map<string, ToolEffects>();

  constructor(tools: Iterable<readonly [string, ToolEffects]> = []) {
    for (const [name, effects] of tools) this.#tools.set(name, effects);
  }

  get(name: string): ToolEffects | undefined {
    return this.#tools.get(name);
  }

  /** Takes in the result of a `tools/list`. */
  learn(result: unknown): void {
    if (!isObject(result) || !Array.isArray(result['tools'])) return;
    for (const tool of result['tools'] as readonly unknown[]) {
      if (!isObject(tool) || typeof tool['name'] !== 'string') continue;
      const annotations = isObject(tool['annotations']) ? tool['annotations'] : {};
      const known = this.#tools.get(tool['name']);
      if (known === undefined && this.#tools.size >= MAX_TOOLS) continue;
      this.#tools.set(tool['name'], {
        readOnly: annotations['readOnlyHint'] === true && known?.readOnly !== false,
        idempotent: annotations['idempotentHint'] === true && known?.idempotent !== false,
      });
    }
  }

  /** The list changed: what was known may be wrong, and wrong in the unsafe direction. */
  forget(): void {
    this.#tools.clear();
  }
}

/** Methods that change nothing that outlives the session. */
const WITHOUT_EFFECTS: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'tools/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'logging/setLevel',
]);

/** What is known of a request's effects before it runs. Unknown methods and tools have effects. */
export function effectsOf(request: JsonRpcRequest, catalog: ToolCatalog | undefined): Effects {
  if (WITHOUT_EFFECTS.has(request.method)) return 'none';
  const name = request.params?.['name'];
  if (request.method !== 'tools/call' || typeof name !== 'string') return 'unknown';
  const tool = catalog?.get(name);
  if (tool?.readOnly === true) return 'none';
  return tool?.idempotent === true ? 'idempotent' : 'unknown';
}

/**
 * Whether whoever ran this request recorded its start before, as far as is known here. A former owner may have known a
 * tool of which this worker has heard nothing as one without effects, and those leave no record at once.
 */
export function leavesStart(request: JsonRpcRequest, catalog: ToolCatalog | undefined): boolean {
  if (request.method !== 'tools/call') return !WITHOUT_EFFECTS.has(request.method);
  const name = request.params?.['name'];
  return typeof name === 'string' && catalog?.get(name)?.readOnly === false;
}
