/** A request that the inbox got. */
export interface Receipt {
  /** When its last byte came, in epoch milliseconds. */
  readonly receivedAt: number;
  /** `POST /path HTTP/1.1` */
  readonly requestLine: string;
  /** Name and value in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
  /** Header `webhook-id`: the id of the event delivery. */
  readonly id: string;
  readonly body: string;
  /** What is wrong with the signature; undefined when it is right. */
  readonly problem: string | undefined;
}

/** The headers as `name: value`, a line each. */
export function headerLines({ rawHeaders }: Receipt): string[] {
  const lines: string[] = [];
  for (let k = 0; k < rawHeaders.length; k += 2) lines.push(`${rawHeaders[k]}: ${rawHeaders[k + 1]}`);
  return lines;
}

/** What `GET /` of the inbox answers for a request, to programs. */
export function receiptView(receipt: Receipt): unknown {
  const { receivedAt, requestLine, rawHeaders, body, problem } = receipt;
  const headers = Object.fromEntries(rawHeaders.flatMap((name, k) => (k % 2 === 0 ? [[name.toLowerCase(), rawHeaders[k + 1]]] : [])));
  return {
    received_at: new Date(receivedAt).toISOString(),
    request: requestLine,
    verified: problem === undefined,
    problem: problem ?? null,
    headers,
    body,
  };
}
