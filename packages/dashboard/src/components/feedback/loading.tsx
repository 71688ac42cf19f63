import type { ComponentChildren } from 'preact';
import type { Resource } from '../../api/use-resource.js';
import { Problem } from './problem.js';

/** Grey lines that reserve the space of loading content. */
export function Loading({ lines = 6 }: { readonly lines?: number | undefined }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

/** The content once read, the error if reading failed, and a placeholder until then. */
export function Loaded<Data>({
  resource,
  lines,
  children,
}: {
  readonly resource: Resource<Data>;
  readonly lines?: number;
  readonly children: (data: Data) => ComponentChildren;
}) {
  const { data, error, refresh } = resource;
  return (
    <>
      {error && <Problem error={error} retry={refresh} />}
      {data === undefined ? !error && <Loading lines={lines} /> : children(data)}
    </>
  );
}
