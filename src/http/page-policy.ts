/**
 * The content security policy of the pages of this service: nothing from elsewhere, no inline script or style, no framing,
 * no form that submits elsewhere.
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
