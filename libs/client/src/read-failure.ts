/** What the platform says of a request that failed. Node names its causes; browsers do not, on purpose. SPEC: CLIENT-UNSENT. */

export interface Failure {
  /** Of the innermost cause that has one, as `ECONNREFUSED`. */
  readonly causeCode: string | undefined;
  /** It is certain that nothing of the request has left: no name was found, or no connection was made. */
  readonly wasUnsent: boolean;
}

interface Cause {
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly errors?: unknown;
  readonly cause?: unknown;
}

const MAX_DEPTH = 5;

export function readFailure(error: unknown): Failure {
  let causeCode: string | undefined;
  let wasUnsent = false;
  for (let depth = 0, each = error; isCause(each) && depth < MAX_DEPTH; each = each.cause, depth++) {
    if (typeof each.code === 'string') causeCode = each.code;
    wasUnsent ||= isOfConnecting(each);
  }
  return { causeCode, wasUnsent };
}

/** Codes alone say too little: `ETIMEDOUT` may be that of a connection over which the request went. */
function isOfConnecting({ code, syscall, errors }: Cause): boolean {
  // One for each address of the name.
  if (Array.isArray(errors) && errors.length > 0)
    return errors.every((each: unknown) => isCause(each) && isOfConnecting(each));
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT';
}

function isCause(value: unknown): value is Cause {
  return typeof value === 'object' && value !== null;
}
