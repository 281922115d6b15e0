/**
 * An order of a person that cannot be carried out; the message is the reason. A command prints it, and a request gets it as
 * the 403 problem `forbidden`.
 */
export class Refusal extends Error {}
