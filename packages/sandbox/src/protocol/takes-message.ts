const ONE_PARAMETER = /\bfunction\s+transform\s*\(\s*[\w$]*\s*\)/;

/**
 * Whether a function may use its second argument. False only for a text that names `transform` once,
 * to declare a function with one plain parameter or none, and has neither `arguments` nor escapes
 * (`\\u`), which could hide either word. Decided by the text, because only a child may run it.
 */
export function takesMessage(text: string): boolean {
  if (!ONE_PARAMETER.test(text) || /\barguments\b|\\u/.test(text)) return true;
  return text.split('transform').length > 2;
}
