/** The standalone stream of one session, kept open until the session is over, and what was heard on it. */
import { checkStream } from '@throughline/testkit/processes';
import type { HttpAnswer, RawClient, SseItem } from '@throughline/testkit/processes';
import { reasonIn } from './call.ts';
import { ask, lastIdOf, readToEnd, textOf } from './endpoint.ts';
import type { EndpointOptions } from './endpoint.ts';

export class Standalone {
  readonly #wire: RawClient;
  readonly #options: EndpointOptions;
  readonly #items: SseItem[] = [];
  #open: HttpAnswer | null = null;
  #earlier = 0;
  #isLeft = false;
  #read: { readonly count: number; readonly texts: readonly string[] } = { count: 0, texts: [] };

  constructor(wire: RawClient, options: EndpointOptions) {
    this.#wire = wire;
    this.#options = options;
  }

  /** Resolves with the reason when the session is over, with null after `leave`. Throws at an answer that nobody promised. */
  async keepOpen(): Promise<string | null> {
    const { url, counts } = this.#options;
    while (!this.#isLeft) {
      const cursor = lastIdOf(this.#items);
      const asked = await ask(this.#options, () =>
        cursor === undefined ? this.#wire.listen(url) : this.#wire.resume(url, cursor),
      );
      if ('failed' in asked) continue;
      const { answer } = asked;
      if (answer.status !== 200) {
        const body = await textOf(answer, this.#options);
        if (body === null) continue;
        if (answer.status === 404) return reasonIn(body);
        throw new Error(`the standalone stream: ${answer.status} ${body}`);
      }
      if (cursor !== undefined) counts.relistened++;
      if (this.#isLeft) answer.cut();
      this.#open = answer;
      await readToEnd(answer, this.#options);
      this.#items.push(...answer.items);
      this.#earlier += answer.events().length;
      this.#open = null;
    }
    return null;
  }

  /** Messages so far. */
  received(): number {
    return this.#earlier + (this.#open?.events().length ?? 0);
  }

  /** Keepalives and events on the connection that is open; -1: none is. */
  aliveOn(): number {
    return this.#open?.items.length ?? -1;
  }

  /** All that was told, in order. Throws `BrokenStream`. */
  texts(): readonly string[] {
    const count = this.received();
    if (count === this.#read.count) return this.#read.texts;
    const messages = checkStream(this.#wire.sessionId, [...this.#items, ...(this.#open?.items ?? [])]);
    const texts = messages.flatMap(({ data }) => {
      const { params } = JSON.parse(data) as { params?: { uri: string } };
      return params === undefined ? [] : [params.uri];
    });
    this.#read = { count, texts };
    return texts;
  }

  leave(): void {
    this.#isLeft = true;
    this.#open?.cut();
  }
}
