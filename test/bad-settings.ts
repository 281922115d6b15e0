import type { SETTINGS } from '../src/settings.ts'

/** Values that each setting refuses. */
export const BAD_SETTINGS: Record<keyof typeof SETTINGS, string[]> = {
  DATABASE_URL: [
    'secret-word',
    'http://secret-word@host/db',
    'postgres://',
    'postgres://u:secret-word@/db',
    'postgres://u:secret-word#1@host/db',
    'postgres://u:secret-word/1@host/db',
    'postgres://u:secret-word 1@host/db',
    'postgres://u:secret-word%@host/db',
    'postgres://u:secret-word@a:5432,b:5432/db',
    'postgres://u:secret-word@host/db?sslmode=prefer',
  ],
  BURSAR_MIGRATIONS_DATABASE_URL: ['secret-word', 'mysql://secret-word@host/db'],
  HOST: ['not a host', 'http://127.0.0.1'],
  PORT: ['http', '-1', '65536', '80.5', '1e3', '0x50'],
  BURSAR_DATA_DIR: [], // Any text can name a folder. One that cannot be created is reported on use.
  BURSAR_MODE: ['production', 'LIVE'],
  BURSAR_BASE_URL: ['bursar.example', 'ftp://bursar.example', 'https://', 'https://bursar.example/?a=b'],
  BURSAR_MASTER_KEY_FILE: [],
  BURSAR_ACCEPTANCE_KEY_FILE: [], // Any text can name a file.
  BURSAR_MASTER_KEY: [], // An invalid key is reported on use.
  BURSAR_WORKER: ['maybe', '2'],
  BURSAR_WORKER_INTERVAL_MS: ['9', '60001', '1s'],
  BURSAR_NETWORKS_FILE: [], // Any text can name a file. An unreadable file is reported on use.
  BURSAR_BANK_FILE: [], // The same.
  BURSAR_SIMULATED_CONFIRMATION_MS: ['-1', '3600001'],
  BURSAR_SIMULATED_HOLD_MS: ['-1', '3600001'],
  BURSAR_SIMULATED_PRICE_DAYS: ['-1', '91'],
  BURSAR_EVENTS_KEPT_DAYS: ['6', '36501', '90d'],
  BURSAR_WEBHOOK_ATTEMPTS_KEPT_DAYS: ['6', '36501'],
  BURSAR_TOKEN_TTL_SECONDS: ['0', '86401', 'NaN'],
  BURSAR_OAUTH_ISSUER: ['issuer', 'mailto:issuer@example.com', 'https://issuer.example/#a'],
  BURSAR_OAUTH_AUDIENCE: [], // Any text.
  BURSAR_OAUTH_TOKEN_TYPE: ['JWT', 'at'],
  BURSAR_OAUTH_CUSTOMER_CLAIM: [], // Any text.
  BURSAR_OAUTH_SCOPE_CLAIM: [], // Any text.
  BURSAR_OAUTH_SCOPE_PREFIX: [], // Any text.
  BURSAR_OPENID_ISSUER: ['login.example', 'ftp://login.example', 'https://login.example/?a=b'],
  BURSAR_OPENID_CLIENT_ID: [], // Any text.
  BURSAR_OPENID_CLIENT_SECRET_FILE: [], // Any text can name a file.
  BURSAR_DATABASE_CONNECTIONS: ['3', '501'],
  BURSAR_STATEMENT_TIMEOUT_MS: ['99', '600001'],
  BURSAR_REQUEST_TIMEOUT_MS: ['99', '600001'],
  BURSAR_REQUESTS_MAX: ['0', '100001'],
  BURSAR_CONNECTIONS_PER_ADDRESS: ['-1', '20001'],
  BURSAR_RATE_LIMIT_PER_SECOND: ['-1', '100001', '0.5'],
  BURSAR_RATE_LIMIT_BURST: ['0', '1000001'],
  BURSAR_CUSTOMER_RATE_LIMIT_PER_SECOND: ['-1', '1000001'],
  BURSAR_CUSTOMER_CHANGES_PER_DAY: ['-1', '1.5'],
  BURSAR_TOKEN_FAILURES_PER_MINUTE: ['-1', '100001'],
  BURSAR_TRUSTED_PROXIES: ['proxy.example', '10.0.0.0/33', '10.0.0.1,', '::1/129', 'true'],
  BURSAR_CORS_ORIGINS: ['*', 'https://a.example/', 'https://a.example,b.example', 'https://A.example'],
  BURSAR_WEBHOOK_SOURCE: ['two words', 'a'.repeat(201)],
  BURSAR_WEBHOOK_ALLOWED_NETWORKS: ['intranet.example', '10.0.0.0/33', '10.0.0.1,'],
  BURSAR_SCREENING_URL: ['screening.example', 'ftp://screening.example', 'https://screening.example/?a=b'],
  BURSAR_SCREENING_SECRET_FILE: [], // Any text can name a file.
  BURSAR_SCREENING_TIMEOUT_MS: ['99', '30001', '3s'],
  BURSAR_CONVERT_USDC: ['maybe', '2'],
  BURSAR_DOCS: ['maybe', '2'],
  BURSAR_CONSOLE: ['maybe', '2'],
  BURSAR_DRAIN_DELAY_MS: ['-1', '600001'],
  BURSAR_SHUTDOWN_TIMEOUT_MS: ['999', '600001'],
  BURSAR_METRICS_HOST: ['not a host', 'http://127.0.0.1'],
  BURSAR_METRICS_PORT: ['metrics', '-1', '65536'],
  BURSAR_LOG_LEVEL: ['loud', 'INFO'],
  BURSAR_LOG_FORMAT: ['pretty', 'TEXT'],
  BURSAR_LOG_REQUESTS: ['maybe', '2'],
}
