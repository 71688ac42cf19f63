import { useEffect } from 'preact/hooks';

/** Moves the focus to the first field that an error is about, also when it is folded away. */
export function useFocusInvalid(error: Error | undefined): void {
  useEffect(() => {
    const field = error && document.querySelector<HTMLElement>('main form [aria-invalid]');
    const folded = field?.closest('details');
    if (folded) folded.open = true;
    field?.focus();
  }, [error]);
}
