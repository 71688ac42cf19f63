import type { ComponentChildren } from 'preact';
import { GatewayApiError } from '@gateway/client';
import { capital } from '../../format/sentence.js';
import { Button } from '../layout/button.js';

export function Problem({
  error,
  retry,
  children,
}: {
  readonly error: Error;
  readonly retry?: (() => void) | undefined;
  readonly children?: ComponentChildren;
}) {
  const isOfApi = error instanceof GatewayApiError;
  const sentence = isOfApi ? sentenceWithoutFix(error) : unreachable(error);
  return (
    <div class="problem" role="alert">
      <p class="problem-sentence">{capital(sentence)}</p>
      {isOfApi && error.errors.length > 0 && (
        <ul>
          {error.errors.map(({ field, sentence: about }) => (
            <li key={field}>
              <code>{field}</code> {about}
            </li>
          ))}
        </ul>
      )}
      {isOfApi && <p>{capital(error.fix)}</p>}
      {isOfApi && error.requestId && <p class="muted mono">request_id {error.requestId}</p>}
      {children}
      {retry && <Button onPress={retry}>Try again</Button>}
    </div>
  );
}

/** The refused fields are listed below; the message would repeat the first. */
function sentenceWithoutFix({ code, errors, message, fix }: GatewayApiError): string {
  if (code === 'invalid_request' && errors.length > 0)
    return errors.length === 1 ? 'one field is refused' : `${errors.length} fields are refused`;
  return message.slice(0, -(fix.length + 3));
}

/** The message of an error in one line, for toasts. */
export function sentenceOf(error: Error): string {
  return error instanceof GatewayApiError ? capital(error.message) : unreachable(error);
}

function unreachable(error: Error): string {
  return error.name === 'TypeError' || error.name === 'TimeoutError'
    ? 'The server cannot be reached. Check the network and that it runs.'
    : error.message;
}
