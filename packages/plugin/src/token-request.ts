export interface TokenClient {
  readonly client_id: string;
  readonly client_secret: string;
  /**
   * Where the id and secret are sent: in the `Authorization` header (`basic`, the default) or in the
   * form (`post`), the only way that some token servers accept.
   */
  readonly client_auth?: 'basic' | 'post';
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
}

/**
 * Returns the request for a token with the client credentials grant:
 * https://www.rfc-editor.org/rfc/rfc6749#section-4.4
 */
export function tokenRequest({
  client_id: id,
  client_secret: secret,
  client_auth: auth = 'basic',
  scope,
  audience,
}: TokenClient): { readonly headers: Record<string, string>; readonly body: string } {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope && { scope }),
    ...(audience && { audience }),
    ...(auth === 'post' && { client_id: id, client_secret: secret }),
  });
  return {
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      // Both parts are form-encoded first: https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
      ...(auth === 'basic' && {
        authorization: `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')}`,
      }),
    },
    body: form.toString(),
  };
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}
