import { readFileSync } from 'node:fs';

const file = new URL('../../plugins/source-http/connection.json', import.meta.url);

interface Enumeration {
  readonly enum: readonly string[];
}

export const connectionSchema = JSON.parse(readFileSync(file, 'utf8')) as {
  readonly properties: {
    readonly verifier: {
      readonly properties: {
        readonly type: Enumeration;
        readonly handshake: { readonly properties: { readonly type: Enumeration } };
      };
    };
  };
};
