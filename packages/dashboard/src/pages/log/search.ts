/** The start of an id: hexadecimal digits, grouped as in a UUID. */
const ID_START = /^[0-9a-f]{8}(-[0-9a-f-]*)?$/i;

export interface Search {
  readonly query?: string;
  readonly event_type?: string;
}

/** Interprets the search text: the start of an id, or an event type. */
export function searchOf(text: string): Search {
  const wanted = text.trim();
  if (wanted === '') return {};
  return ID_START.test(wanted) ? { query: wanted.toLowerCase() } : { event_type: wanted };
}
