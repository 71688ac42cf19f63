/** @param props.value from 0 to 1 */
export function Progress({ label, value }: { readonly label: string; readonly value: number }) {
  const percent = Math.round(Math.min(Math.max(value, 0), 1) * 100);
  return (
    <div class="progress">
      <progress max={100} value={percent} aria-label={label} />
      <span class="number">{percent}%</span>
    </div>
  );
}
