import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

export function Step({
  number,
  title,
  isDone,
  children,
}: {
  readonly number: number;
  readonly title: string;
  readonly isDone: boolean;
  readonly children: ComponentChildren;
}) {
  const id = useId();
  return (
    <li class={`step${isDone ? ' done' : ''}`} aria-labelledby={id}>
      <span class="step-mark" aria-hidden="true">
        {isDone ? '✓' : number}
      </span>
      <div class="step-content">
        <h2 id={id}>
          {title}
          {isDone && <span class="spoken"> (done)</span>}
        </h2>
        {children}
      </div>
    </li>
  );
}
