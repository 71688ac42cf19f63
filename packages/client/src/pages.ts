export interface Page<Row> {
  readonly content: readonly Row[];
  readonly pagination: {
    readonly per_page: number;
    readonly has_next_page: boolean;
    readonly has_prev_page: boolean;
    readonly next_page_cursor: string | null;
    readonly prev_page_cursor: string | null;
    /** How far a search has got when its time was over. The next page goes on from there. */
    readonly searched_to?: string;
  };
}

/** A list of rows. Iterate over it to fetch page by page, or await `page()`. */
export class Pages<Row> implements AsyncIterable<Row> {
  readonly #read: (cursor: string | undefined) => Promise<Page<Row>>;

  /** @param read fetches the page after a cursor, or the requested page if undefined */
  constructor(read: (cursor: string | undefined) => Promise<Page<Row>>) {
    this.#read = read;
  }

  /** Fetches only the requested page. */
  page(): Promise<Page<Row>> {
    return this.#read(undefined);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Row> {
    for (let cursor: string | undefined; ;) {
      const { content, pagination } = await this.#read(cursor);
      yield* content;
      if (!pagination.has_next_page || pagination.next_page_cursor === null) return;
      cursor = pagination.next_page_cursor;
    }
  }
}
