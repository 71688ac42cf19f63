/** The start of an id: hexadecimal digits in the groups of a UUID. */
const ID_START = /^[0-9a-f]{8}(-[0-9a-f-]*)?$/i;

/** A part of the query of a list. */
export interface Search {
  /** The start of an id. */
  readonly query?: string;
  readonly event_type?: string;
}

/** What a text in the search field asks for: the start of an id, or an event type. */
export function searchOf(text: string): Search {
  const wanted = text.trim();
  if (wanted === '') return {};
  return ID_START.test(wanted) ? { query: wanted.toLowerCase() } : { event_type: wanted };
}
