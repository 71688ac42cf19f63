import type { TransformResult } from '@gateway/sandbox';

type TransformedData =
  | { readonly kind: 'made'; readonly data: string }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'failed'; readonly code: string; readonly reason: string };

/**
 * An array fails, because event data is a single object; only source functions may return arrays.
 */
export function transformedData(result: TransformResult): TransformedData {
  switch (result.kind) {
    case 'object':
      return { kind: 'made', data: result.json };
    case 'dropped':
      return result;
    case 'array':
      return {
        kind: 'failed',
        code: 'not_an_object',
        reason: `The function returned an array of ${result.items.length}, and a delivery has one object. Return an object, or null to send nothing.`,
      };
    case 'refused':
      return { kind: 'failed', code: result.code, reason: result.reason };
  }
}
