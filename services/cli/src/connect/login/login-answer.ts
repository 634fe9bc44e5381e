/** What an authorization server says over the person's browser. Pure. SPEC: CONNECT-LOGIN-STATE. */

export type LoginAnswer =
  | { readonly kind: 'code'; readonly code: string; readonly iss: string | undefined }
  /** The person, or the server, has said no. */
  | { readonly kind: 'refused'; readonly why: string }
  /** To another question than the one that waits: it changes nothing. */
  | { readonly kind: 'other' };

/** @param state of the question that waits. */
export function readLoginAnswer(params: URLSearchParams, state: string): LoginAnswer {
  const [code, error] = [only(params, 'code'), only(params, 'error')];
  if (only(params, 'state') !== state) return { kind: 'other' };
  if (error !== undefined) {
    const description = only(params, 'error_description');
    return { kind: 'refused', why: description === undefined ? error : `${error}: ${description}` };
  }
  return code === undefined ? { kind: 'other' } : { kind: 'code', code, iss: only(params, 'iss') };
}

/** Twice is as good as never. */
function only(params: URLSearchParams, name: string): string | undefined {
  const [first, ...more] = params.getAll(name);
  return more.length > 0 || first === '' ? undefined : first;
}
