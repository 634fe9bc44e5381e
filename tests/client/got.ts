/** A JSON-RPC message that came, as far as the tests look into it. */
export interface Params {
  readonly data?: unknown;
  readonly uri?: string;
  readonly level?: string;
  readonly requestId?: string | number;
  readonly progressToken?: string | number;
  readonly clientInfo?: { readonly name: string };
  readonly _meta?: { readonly progressToken?: string | number };
}

export interface Got {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Params;
  readonly result?: { readonly action?: string };
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data: { readonly code?: string; readonly cause?: string; readonly mayHaveRun?: boolean };
  };
}
