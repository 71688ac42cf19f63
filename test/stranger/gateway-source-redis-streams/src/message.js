/** Converts a stream entry to a message: the field `body` is the body, the others are headers. */
export function messageOf(stream, [id, fields]) {
  const headers = {};
  let body = Buffer.alloc(0);
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i].toString();
    if (name === 'body') body = fields[i + 1];
    else headers[name] = fields[i + 1].toString();
  }
  const entry = id.toString();
  return {
    coordinates: `${stream}/${entry}`,
    timestamp: Number(entry.split('-')[0]),
    body,
    headers,
  };
}
