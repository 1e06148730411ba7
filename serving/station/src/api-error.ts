// What went wrong with a call of the service. In a file of its own, as it needs no page to be known.

export class ApiError extends Error {
  constructor(
    /** HTTP status; 0: the server did not answer. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
  }
}
