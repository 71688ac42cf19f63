import type { ComponentChildren } from 'preact';
import { Copyable } from './copy.js';

export function NewSecret({
  what,
  secret,
  children,
}: {
  readonly what: string;
  readonly secret: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="new-secret" role="status">
      <p class="new-secret-title">Copy the {what} now: it is not shown again.</p>
      <Copyable text={secret} what={what} />
      {children}
    </div>
  );
}
