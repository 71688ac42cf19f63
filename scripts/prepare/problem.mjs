// @ts-check
/** What the user has to know and can mend: its message is printed as it is, without a stack. */
export class Problem extends Error {}
