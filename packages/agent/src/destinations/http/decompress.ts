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
