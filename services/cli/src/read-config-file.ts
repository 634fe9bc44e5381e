/** throughline.yaml as a layer, and its servers as written. */
import path from 'node:path';
import { isMap, isNode, isScalar, isSeq, parseDocument } from 'yaml';
import type { YAMLMap } from 'yaml';
import type { Fault } from './faults.ts';
import type { Layer, RawValue } from './layers.ts';
import { didYouMean } from './nearest-name.ts';
import { OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionName } from './option-table.ts';

export interface FileLayer {
  readonly layer: Layer;
  /** What stands under `servers`, unchecked; undefined if there is none. */
  readonly servers: unknown;
  /** What stands under `auth.issuers`, unchecked; undefined if there is none. */
  readonly issuers: unknown;
  readonly faults: readonly Fault[];
}

const SERVERS = 'servers';
const ISSUERS = 'auth.issuers';
/** `log: memory:` is no YAML, and `log: sqlite:x` is what people write first: the section may be its location alone. */
const SHORTHANDS: ReadonlyMap<string, string> = new Map([['log', 'log.url']]);

/** `name` is how the file is called in faults; relative paths in it are relative to `folder`. */
export function readConfigFile(text: string, name: string, folder: string): FileLayer {
  const document = parseDocument(text, { prettyErrors: true });
  const [error] = document.errors;
  if (error !== undefined) {
    const line = error.linePos?.[0].line ?? 1;
    const reason = error.message.split('\n')[0]?.replace(/ at line .*$/, '') ?? '';
    return {
      layer: new Map(),
      servers: undefined,
      issuers: undefined,
      faults: [{ where: `${name}, line ${line}`, problem: `no valid YAML: ${reason}` }],
    };
  }
  const faults: Fault[] = [];
  const layer = new Map<OptionName, RawValue>();
  const names = new Map<string, OptionName>();
  for (const option of OPTION_NAMES) {
    const { yaml } = optionRow(option);
    if (yaml !== null) names.set(yaml, option);
  }
  const places = [...names.keys(), SERVERS, ISSUERS];
  const root = document.contents;
  if (root === null) return { layer, servers: undefined, issuers: undefined, faults };
  if (!isMap(root))
    return {
      layer,
      servers: undefined,
      issuers: undefined,
      faults: [{ where: name, problem: 'must hold names and values.' }],
    };
  visit(root, '');
  return { layer, servers: valueAt(SERVERS), issuers: valueAt(ISSUERS), faults };

  function valueAt(place: string): unknown {
    const node = document.getIn(place.split('.'), true);
    return isNode(node) ? node.toJS(document) : undefined;
  }

  function visit(map: YAMLMap, prefix: string): void {
    for (const { key, value } of map.items) {
      const word = isScalar(key) ? scalarText(key.value) : '(not a name)';
      const place = prefix === '' ? word : `${prefix}.${word}`;
      if (place === SERVERS || place === ISSUERS) continue;
      const isSection = places.some((known) => known.startsWith(`${place}.`));
      if (isSection && isMap(value)) visit(value, place);
      else {
        const option = names.get(place) ?? names.get(SHORTHANDS.get(place) ?? '');
        const where = `${name}: ${place}`;
        if (option !== undefined) read(option, value, where);
        else if (isSection) faults.push({ where, problem: `is a section; write its settings below it, indented.` });
        else faults.push({ where, problem: `no such setting.${suggestPlace(place, word, places)}` });
      }
    }
  }

  function read(option: OptionName, node: unknown, where: string): void {
    const row = optionRow(option);
    let text: string | undefined;
    if (isScalar(node)) {
      // A key without a value is not set.
      if (node.value === null) return;
      // As it was written: 1e3 or 0x10 are no numbers here, and a long one loses no digit.
      text = node.source ?? scalarText(node.value);
    } else if (isSeq(node) && row.kind === 'list') {
      text = node.items.map((item) => (isScalar(item) ? scalarText(item.value) : '')).join(',');
      if (node.items.length === 0) return;
    }
    if (text === undefined) {
      faults.push({ where, problem: row.kind === 'list' ? 'must be a list of words.' : 'must be one value.' });
      return;
    }
    if (row.isPath === true) text = path.resolve(folder, text);
    if (row.kind === 'log' && text.startsWith('sqlite:') && text !== 'sqlite:')
      text = `sqlite:${path.resolve(folder, text.slice('sqlite:'.length))}`;
    layer.set(option, { text, source: 'file', where });
  }
}

/** What is no text, number or boolean is refused by every kind of value, so it may be empty here. */
function scalarText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

/** The nearest whole place, or else the place whose last word it is: `maxBody` means `limits.maxBody`. */
function suggestPlace(place: string, word: string, places: readonly string[]): string {
  const sections = new Set(places.map((known) => known.split('.')[0] ?? known));
  const sameWord = places.find((known) => known.split('.').at(-1) === word);
  return sameWord === undefined ? didYouMean(place, [...places, ...sections]) : ` Did you mean ${sameWord}?`;
}
