import { isUtf8 } from 'node:buffer';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

/**
 * Decompresses a response body. Calls `done` once with the bytes that could be decompressed,
 * truncated to `maxBytes`, or with a placeholder if the encoding is unknown. Never throws.
 */
export function decompress(
  compressed: Buffer,
  encoding: string,
  maxBytes: number,
  done: (body: Buffer | string) => void,
): void {
  const stream =
    encoding === 'gzip' || encoding === 'x-gzip'
      ? createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
      : encoding === 'deflate'
        ? createInflate({ finishFlush: constants.Z_SYNC_FLUSH })
        : encoding === 'br'
          ? createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })
          : undefined;
  if (!stream) {
    done(`(${compressed.length} bytes with content-encoding ${encoding})`);
    return;
  }
  const chunks: Buffer[] = [];
  let kept = 0;
  const end = () => {
    stream.removeAllListeners('data').removeAllListeners('end');
    stream.destroy();
    done(Buffer.concat(chunks).subarray(0, maxBytes));
  };
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    if ((kept += chunk.length) >= maxBytes) end();
  });
  stream.once('end', end);
  let failed = false;
  stream.on('error', () => {
    if (!failed && kept < maxBytes) end();
    failed = true;
  });
  stream.end(compressed);
}

/**
 * Decodes a body by the charset of its content type. Without one, or with an unknown one, it is
 * UTF-8. The text has at most `maxBytes` in UTF-8, because legacy encodings are shorter.
 */
export function bodyText(bytes: Buffer, contentType = '', maxBytes: number): string {
  const [, label = 'utf-8'] = /;\s*charset\s*=\s*["']?([^\s;"']+)/i.exec(contentType) ?? [];
  if (/^utf-?8$/i.test(label)) return bytes.toString('utf8');
  const isBigEndian = /^utf-?16$/i.test(label) && bytes[0] === 0xfe && bytes[1] === 0xff;
  let decoder;
  try {
    decoder = new TextDecoder(isBigEndian ? 'utf-16be' : label);
  } catch {
    return bytes.toString('utf8');
  }
  // `stream` omits a last character that the limit of the body has cut.
  const text = decoder.decode(bytes, { stream: true });
  if (text.length * 3 <= maxBytes) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read);
}

/** Decodes a header value, for which HTTP names no charset: as UTF-8 if it is valid. */
export function headerText(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
}
