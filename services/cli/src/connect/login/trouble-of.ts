/** What the SDK and the network throw, as trouble of a login. The messages say what went wrong and hold no secret. SPEC: CONNECT-LOGIN-FAILS. */
import {
  AuthorizationServerMismatchError,
  InsecureTokenEndpointError,
  IssuerMismatchError,
  OAuthError,
  OAuthErrorCode,
  RegistrationRejectedError,
} from '@modelcontextprotocol/client';
import { errorText } from '@throughline/log';
import { OutOfReachError } from './careful-fetch.ts';
import { LoginError } from './login-error.ts';

const SERVER_ERROR: string = OAuthErrorCode.ServerError;

export function troubleOf(error: unknown): LoginError {
  if (error instanceof LoginError) return error;
  if (error instanceof OutOfReachError) return new LoginError('UNAVAILABLE', error.message, error);
  if (error instanceof IssuerMismatchError || error instanceof AuthorizationServerMismatchError)
    return new LoginError(
      'MISMATCH',
      `the answer is of another authorization server than asked: ${error.message}`,
      error,
    );
  if (error instanceof RegistrationRejectedError)
    return new LoginError(
      'FAILED',
      `the authorization server registers no client (${error.status}); register one there, and give --client-id`,
      error,
    );
  if (error instanceof InsecureTokenEndpointError)
    return new LoginError('FAILED', 'the token endpoint of the authorization server has no TLS', error);
  if (error instanceof OAuthError)
    // The body of an answer that is no OAuth error is not repeated: nobody knows what it holds.
    return error.code === SERVER_ERROR
      ? new LoginError('UNAVAILABLE', 'the authorization server failed', error)
      : new LoginError('REFUSED', `the authorization server refuses: ${error.code}`, error);
  return new LoginError('FAILED', errorText(error), error);
}
