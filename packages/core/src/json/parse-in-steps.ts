import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipString,
} from './json-value.js';

/** Characters per step, which takes about 1 ms. A step may be up to twice as long. */
const PIECE = 8 * 1024;

interface OpenValue {
  readonly isArray: boolean;
  readonly at: number;
  /**
   * The start of the properties not yet in `value`. Greater than `memberAt` if the current property
   * is already in `value`.
   */
  from: number;
  memberAt: number;
  /** Undefined while the text may still be short enough to be parsed with its parent. */
  value: Record<string, unknown> | unknown[] | undefined;
  size: number;
}

export interface ParsedJson {
  readonly value: unknown;
  /** Property counts of large objects, because counting them later would take milliseconds. */
  readonly sizes: ReadonlyMap<object, number>;
}

/**
 * Parses valid JSON like `JSON.parse`, but yields every few kilobytes: a megabyte of small
 * properties takes 30 to 90 ms. Strings and numbers are never split.
 */
export function* parseInSteps(text: string, pieceLength = PIECE): Generator<void, ParsedJson> {
  const sizes = new Map<object, number>();
  const opened: OpenValue[] = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at) - 1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      opened.push({
        isArray: code === OPEN_BRACKET,
        at,
        from: at + 1,
        memberAt: at + 1,
        value: undefined,
        size: 0,
      });
    } else if (code === COMMA) {
      const open = opened.at(-1)!;
      if (open.from > open.memberAt) open.from = at + 1;
      else if (at - open.from >= pieceLength) {
        take(text, open, at);
        yield;
      }
      open.memberAt = at + 1;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      const closed = opened.pop()!;
      if (!closed.value && at - closed.at < pieceLength) continue;
      if (closed.from <= closed.memberAt) take(text, closed, at);
      if (!closed.isArray) sizes.set(closed.value!, closed.size);
      yield;
      const outer = opened.at(-1);
      if (!outer) return { value: closed.value, sizes };
      if (outer.from < outer.memberAt) take(text, outer, outer.memberAt - 1);
      const before = text.slice(outer.memberAt, closed.at);
      put(
        outer,
        outer.isArray ? '' : (JSON.parse(before.slice(0, before.lastIndexOf(':'))) as string),
        closed.value,
      );
      outer.from = at + 1;
    }
  }
  return { value: JSON.parse(text), sizes };
}

function take(text: string, open: OpenValue, end: number): void {
  const members = text.slice(open.from, end);
  open.from = end + 1;
  open.value ??= open.isArray ? [] : {};
  if (open.isArray)
    for (const element of JSON.parse(`[${members}]`) as unknown[]) put(open, '', element);
  else
    for (const [name, member] of Object.entries(JSON.parse(`{${members}}`) as object))
      put(open, name, member);
}

/** If a name is repeated, the last one wins. */
function put(open: OpenValue, name: string, member: unknown): void {
  open.value ??= open.isArray ? [] : {};
  const { value } = open;
  if (Array.isArray(value)) value.push(member);
  else {
    if (!Object.hasOwn(value, name)) open.size++;
    if (name === '__proto__')
      Object.defineProperty(value, name, {
        value: member,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    else value[name] = member;
  }
}
