/**
 * Requests and answers of the API, generated from its OpenAPI document by openapi-typescript. `npm run client-schema`
 * writes this file, and a test compares it with the service. The file has no refusals: the client throws them.
 */
export interface paths {
  '/v2/transfer/crypto-withdrawals': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Create Crypto Withdrawal
     * @description Moves crypto from a profile balance to an external address. The transfer is PENDING; its total is debited immediately.
     */
    post: operations['createCryptoWithdrawal']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/transfers/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Transfer
     * @description Reads one transfer, with its current status and further details of the status where there are any.
     */
    get: operations['getTransfer']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/transfers/{id}/history': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Transfer History
     * @description Answers what happened to one transfer: who asked for it, the entries of the ledger with the balances before and after, its approval, its transactions on the network, its quoted and its real fee, its events with each delivery, and its orchestration. A part that needs a scope which the token lacks is absent.
     */
    get: operations['getTransferHistory']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/transfers/{id}/verification': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Verify Transfer
     * @description Derives the entries of one transfer again: they sum to zero, each balance follows from the one before it, they are those of its status, and the audit log has them as they were written.
     */
    get: operations['verifyTransfer']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/volumes': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Transfer Volumes
     * @description The number and sum of the customer's transfers that were created in the last 24 hours, by type, asset and status. Some seconds old at most; older where the sums take long.
     */
    get: operations['listTransferVolumes']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/transfers': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Transfers
     * @description Lists transfers of every type, newest first. Filters combine: a record must pass each of them.
     */
    get: operations['listTransfers']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/transfers/{id}/cancel': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Cancel Transfer
     * @description Cancels a PENDING withdrawal that is not signed yet: it becomes FAILED with the secondary status CUSTOMER_REJECTED, and its total returns to the profile. A signed withdrawal may be paid already and cannot be cancelled. Crypto withdrawals need the scope `transfer:write_crypto_withdrawal`, wires `transfer:write_fiat_withdrawal`. A repeated cancel returns the same record.
     */
    post: operations['cancelTransfer']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/internal': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Create Internal Transfer
     * @description Moves money between profiles immediately. Returns the debit; the credit has the same group_id.
     */
    post: operations['createInternalTransfer']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/paxos': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Create Paxos Transfer
     * @description Moves money to a profile of another customer immediately. Returns the debit; the credit of the receiver has the same group_id.
     */
    post: operations['createPaxosTransfer']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/fiat-withdrawals': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Create Fiat Withdrawal
     * @description Sends USD to a bank account by wire. The transfer is PENDING; its total is debited immediately.
     */
    post: operations['createFiatWithdrawal']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/fees/crypto-withdrawal': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Create Crypto Withdrawal Fee
     * @description Guarantees a fee for one withdrawal of at most this amount to this destination, until the quote expires.
     */
    post: operations['createCryptoWithdrawalFee']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/crypto-withdrawals/bulk': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Create Crypto Withdrawals
     * @description Makes 1 to 1,000 withdrawals, one after the other, and answers each with its transfer or its problem. Repeating the whole request is safe.
     */
    post: operations['createCryptoWithdrawals']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/orchestration/orchestrations': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Orchestrations
     * @description Lists orchestrations, newest first. Filters combine: a record must pass each of them.
     */
    get: operations['listOrchestrations']
    put?: never
    /**
     * Create Orchestration
     * @description Takes money from a profile, converts it and sends it to its destination. An impossible payment is refused immediately.
     */
    post: operations['createOrchestration']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/orchestration/rules': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Orchestration Rules
     * @description Lists rules, including deleted rules, newest first.
     */
    get: operations['listOrchestrationRules']
    put?: never
    /**
     * Create Orchestration Rule
     * @description A fiat or crypto source gets its own deposit instructions or deposit address. USD and platform-issued stablecoins are converted one to one.
     */
    post: operations['createOrchestrationRule']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/orchestration/rules/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    post?: never
    /**
     * Delete Orchestration Rule
     * @description Later deposits stay on the profile; orchestrations under way continue. The record stays, with the status DELETED. A repeat changes nothing.
     */
    delete: operations['deleteOrchestrationRule']
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/orchestration/orchestrations/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Orchestration
     * @description Reads one orchestration, with its source and destination transfers.
     */
    get: operations['getOrchestration']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/statements': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Statements
     * @description Lists the statements of the token's customer, latest period first. Another customer_id is refused with 403.
     */
    get: operations['listStatements']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/statements/payments': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Payments
     * @description Lists the payments of statements, newest first. A generated statement has a pending payment.
     */
    get: operations['listPayments']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/rewards/statements': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Rewards Statements
     * @description Lists the monthly rewards of the token's customer, latest period first.
     */
    get: operations['listRewardsStatements']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/rewards/statements/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Rewards Statement
     * @description Returns the rewards of one month.
     */
    get: operations['getRewardsStatement']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/statements/{id}/explanation': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Explain Statement
     * @description Computes a generated statement again from the ledger's entries, day by day, and compares the result with the statement. 404 until it is generated.
     */
    get: operations['explainStatement']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/rewards/rates': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Rewards Rates
     * @description Lists the annual rates of rewards, newest first.
     */
    get: operations['listRewardsRates']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/sandbox/fiat-deposits': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Initiate Sandbox Fiat Deposit
     * @description Simulates an incoming wire. The balance is credited before the answer, except for magic amounts. Exists in sandbox mode only.
     */
    post: operations['initiateSandboxFiatDeposit']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/sandbox/profiles/{id}/deposit': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Deposit To Sandbox Profile
     * @description Simulates a deposit, for testing: of fiat by wire, of any other asset over crypto_network (default: the first simulated network that supports it). The balance is credited before the answer, except for magic amounts. The scope `funding:read_profile` is sufficient too. Exists in sandbox mode only.
     */
    post: operations['depositToSandboxProfile']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/accounts/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Account
     * @description Reads one account, with its members and its profile.
     */
    get: operations['getAccount']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/accounts': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Accounts
     * @description Lists the customer's accounts, newest first.
     */
    get: operations['listAccounts']
    /**
     * Update Account
     * @description Changes the given fields of the account. metadata is replaced as a whole. Other members of the account may be repeated but not changed.
     */
    put: operations['updateAccount']
    /**
     * Create Account
     * @description Creates an account of an identity, with its members and, on request, its profile. Its ref_id is unique among the accounts of the same API client.
     */
    post: operations['createAccount']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/account-members': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Add Account Members
     * @description Adds all of the members or none, and answers those that were added.
     */
    post: operations['addAccountMembers']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/account-members/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    post?: never
    /**
     * Remove Account Member
     * @description Removes a member, by its own id. The identity stays. A repeat changes nothing.
     */
    delete: operations['removeAccountMember']
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/markets/{market}/historical-prices': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Historical Prices
     * @description Average prices of a market over ended increments, oldest first. The increment is given, or selected by max_data_points.
     */
    get: operations['listHistoricalPrices']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/markets': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Markets
     * @description Lists the markets, with the time span and the source of their prices. Needs no access token.
     */
    get: operations['listMarkets']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/all-markets/prices': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Prices
     * @description The newest price of each market, and the price of 24 hours before. Markets without prices are left out. Needs no access token.
     */
    get: operations['listPrices']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/markets/{market}/historical-candles': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Historical Candles
     * @description Open, high, low and close of a market over ended increments, newest first. The increment is given, or selected by max_data_points.
     */
    get: operations['listHistoricalCandles']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/profiles': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Profiles
     * @description Lists the customer's profiles, newest first.
     */
    get: operations['listProfiles']
    put?: never
    /**
     * Create Profile
     * @description Creates a profile of type NORMAL. Its nickname is unique among the customer's.
     */
    post: operations['createProfile']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/profiles/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Profile
     * @description Reads one profile.
     */
    get: operations['getProfile']
    /**
     * Update Profile
     * @description Replaces the given members. The nickname is unique among the customer's profiles.
     */
    put: operations['updateProfile']
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/profiles/{id}/deactivate': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Deactivate Profile
     * @description Deactivates a NORMAL profile whose balances are 0 and that nothing uses. It takes no withdrawals, new addresses, instructions, rules or transfers to it. Late deposits are still credited, and an internal transfer takes them out. A repeat changes nothing.
     */
    put: operations['deactivateProfile']
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/balances/history': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Balance History
     * @description The sum of the balances of all profiles, by asset: at the begin of each of the last days (UTC), and now. Each is what the entries of the ledger up to that moment left.
     */
    get: operations['listBalanceHistory']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/profiles/{id}/balances': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Profile Balances
     * @description Lists the balances of every asset that the profile has ever held. With `at`, as they were at that moment, from the entries of the ledger.
     */
    get: operations['listProfileBalances']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/profiles/{id}/balances/{asset}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Profile Balance
     * @description Reads the balance of one asset: 0 if the profile never held it.
     */
    get: operations['getProfileBalance']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/profiles/{id}/entries': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Profile Entries
     * @description Lists the changes of a profile's balances, newest first: the ledger's own history, with the balance after each change.
     */
    get: operations['listProfileEntries']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/identities': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Identities
     * @description Lists the customer's identities, newest first.
     */
    get: operations['listIdentities']
    put?: never
    /**
     * Create Identity
     * @description Creates a person or an institution: exactly one of person_details and institution_details is given.
     */
    post: operations['createIdentity']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/identities/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Identity
     * @description Reads one identity.
     */
    get: operations['getIdentity']
    /**
     * Update Identity
     * @description Changes the given fields; members of details and of customer_due_diligence one by one, other fields whole. Other details than email and phone_number need a new verification: an APPROVED identity becomes PENDING.
     */
    put: operations['updateIdentity']
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/institution-members': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Add Institution Members
     * @description Adds all of the members or none, and answers those that were added. An APPROVED institution becomes PENDING: it needs a new verification.
     */
    post: operations['addInstitutionMembers']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/institution-members/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    post?: never
    /**
     * Remove Institution Member
     * @description Removes a member, by its own id. The identity stays. A repeat changes nothing. An APPROVED institution becomes PENDING: it needs a new verification.
     */
    delete: operations['removeInstitutionMember']
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/identities/{id}/sandbox-status': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Set Identity Sandbox Status
     * @description Simulates the verification and the administrator: sets the given fields, at least one. The results of single checks, from which the status follows, and flags in objects of their own are answered by an empty object. Exists in sandbox mode only.
     */
    put: operations['setIdentitySandboxStatus']
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/conversion/stablecoins': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Stablecoin Conversions
     * @description Lists the customer's conversions, newest first.
     */
    get: operations['listStablecoinConversions']
    put?: never
    /**
     * Create Stablecoin Conversion
     * @description Converts between USD and stablecoins on a profile, one to one and without a fee. It is settled at once.
     */
    post: operations['createStablecoinConversion']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/conversion/stablecoins/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Stablecoin Conversion
     * @description Reads one conversion.
     */
    get: operations['getStablecoinConversion']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/deposit-addresses': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Deposit Addresses
     * @description Lists the customer's deposit addresses, newest first.
     */
    get: operations['listDepositAddresses']
    put?: never
    /**
     * Create Deposit Address
     * @description Creates an address. Deposits to it over its network, or over a network with the same addresses, are credited to the profile.
     */
    post: operations['createDepositAddress']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/crypto-destination-address': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    /**
     * Put Crypto Destination Address
     * @description Creates an address of the address book, or updates the given fields of one. An address is found by its id, or by crypto_network, address and identity_id. A new address is PENDING for the cooling time of the policy, if it has one, and APPROVED then.
     */
    put: operations['putCryptoDestinationAddress']
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/crypto-destination-addresses': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Crypto Destination Addresses
     * @description Lists the customer's address book, newest first.
     */
    get: operations['listCryptoDestinationAddresses']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/fiat-accounts': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Fiat Accounts
     * @description Lists the customer's fiat accounts, newest first; deleted ones only with include_deleted.
     */
    get: operations['listFiatAccounts']
    put?: never
    /**
     * Create Fiat Account
     * @description Registers a bank account for fiat withdrawals. The sandbox's bank decides immediately.
     */
    post: operations['createFiatAccount']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/fiat-accounts/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Fiat Account
     * @description Reads one fiat account. A deleted one is not found, unless include_deleted is true.
     */
    get: operations['getFiatAccount']
    /**
     * Update Fiat Account
     * @description Replaces the metadata. All other members may be repeated but not changed: create a new fiat account for other bank details.
     */
    put: operations['updateFiatAccount']
    post?: never
    /**
     * Delete Fiat Account
     * @description Nothing new is paid to it; wires under way are still sent. Refused while an active orchestration rule pays to it. The record stays, with its deleted_at. A repeat changes nothing.
     */
    delete: operations['deleteFiatAccount']
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/fiat-deposit-instructions': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Fiat Deposit Instructions
     * @description Lists the customer's deposit instructions, newest first.
     */
    get: operations['listFiatDepositInstructions']
    put?: never
    /**
     * Create Fiat Deposit Instructions
     * @description Creates instructions for wires: the bank account, and the memo_id that a wire needs for the profile to be credited.
     */
    post: operations['createFiatDepositInstructions']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/fiat-deposit-instructions/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Fiat Deposit Instructions
     * @description Reads deposit instructions, with the bank account that wires go to now.
     */
    get: operations['getFiatDepositInstructions']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/assets': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Assets
     * @description Lists the assets that a profile can hold, with decimals, fees and limits on each network. Needs no access token.
     */
    get: operations['listAssets']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/networks': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Networks
     * @description Lists the networks, with their status, confirmations, and the fees and limits of each asset.
     */
    get: operations['listNetworks']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/search': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Search Records
     * @description Finds records by their exact id, `ref_id`, transaction hash, address or memo, newest first and at most 50. Records of types that the token may not read are left out.
     */
    get: operations['searchRecords']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/events': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Events
     * @description Lists changes of status, oldest first. Walked in this order, no event is missed and none comes twice. Filters combine: an event must pass each of them.
     */
    get: operations['listEvents']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/events/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Event
     * @description Reads one event, with its object.
     */
    get: operations['getEvent']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/events/{id}/resend': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Resend Event
     * @description Delivers the event again, also where it was delivered: to the given webhook, whatever its event_types, or to every ACTIVE one that gets it or that got it before. An attempt under way counts as the first of the new round.
     */
    post: operations['resendEvent']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/webhooks': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Webhooks
     * @description Lists the customer's webhooks, newest first. Secrets are never shown.
     */
    get: operations['listWebhooks']
    put?: never
    /**
     * Create Webhook
     * @description Events from now on are delivered to the URL. The answer holds the secret that verifies deliveries (Standard Webhooks); it is not shown again. A customer has at most 10 ACTIVE webhooks.
     */
    post: operations['createWebhook']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/webhooks/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Webhook
     * @description Secrets are never shown.
     */
    get: operations['getWebhook']
    /**
     * Update Webhook
     * @description Replaces the given members; `auth` as a whole, with its secret. A webhook that becomes ACTIVE again gets events from now on and those whose delivery was under way; Recover Webhook sends the others.
     */
    put: operations['updateWebhook']
    post?: never
    /**
     * Delete Webhook
     * @description Nothing more is delivered, except attempts under way. Its secrets are deleted, its deliveries cannot be read any more, and its name is free. A repeat is answered 404.
     */
    delete: operations['deleteWebhook']
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/webhooks/{id}/rotate-secret': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Rotate Webhook Secret
     * @description Answers a new signing secret, which is not shown again. Until `grace_seconds` have passed, deliveries are signed with the previous secret, too; a secret from before that one no longer signs.
     */
    post: operations['rotateWebhookSecret']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/webhooks/{id}/test': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Test Webhook
     * @description Delivers an example event with `is_test: true` to this webhook only, of any type. The records that it names do not exist. The answer is its delivery, whose attempts show the outcome.
     */
    post: operations['testWebhook']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/webhooks/{id}/recover': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Recover Webhook
     * @description Starts a delivery of each event of this time that the webhook gets and that was not delivered to it. Deliveries that wait for a later attempt are made due now. A request looks at up to 5,000 events: while the answer has a next_page_cursor, repeat the request with it.
     */
    post: operations['recoverWebhook']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/webhooks/{id}/deliveries': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Webhook Deliveries
     * @description Lists the deliveries of a webhook, newest event first. A delivery exists from its first attempt on.
     */
    get: operations['listWebhookDeliveries']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/webhooks/{id}/deliveries/{delivery_id}/attempts': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Delivery Attempts
     * @description Lists the attempts to deliver an event to a webhook, newest first: none while the event waits for its first attempt.
     */
    get: operations['listDeliveryAttempts']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/policy': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Policy
     * @description Reads the rules for payments, and which changes need approval. Version 0: there is no policy.
     */
    get: operations['getPolicy']
    /**
     * Put Policy
     * @description Makes a new version of the policy, which counts for every payment from then on.
     */
    put: operations['putPolicy']
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/policy/versions': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Policy Versions
     * @description Lists up to 100 versions, newest first; `before` continues.
     */
    get: operations['listPolicyVersions']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/limits/utilizations': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Transfer Limits
     * @description Lists the limits of the policy with what is left of them, in the order of the rules: one item for each subject with payments in the period, 1,000 at most.
     */
    get: operations['listTransferLimits']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/approvals': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Approvals
     * @description Lists the withdrawals and changes that wait for approvers, or have waited, newest first.
     */
    get: operations['listApprovals']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/approvals/{id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Get Approval
     * @description Answers the approval with the two texts of which an approver signs one. A text is made from the withdrawal as it would be paid. Read the text before you sign it.
     */
    get: operations['getApproval']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/approvals/{id}/approve': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Approve Approval
     * @description Records the statement with which an approver approves. The signature counts, not the token: whoever has the scope may send it. With enough approvals the status is APPROVED.
     */
    post: operations['approveApproval']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/approvals/{id}/reject': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Reject Approval
     * @description Records the statement with which an approver rejects. The status is REJECTED, and a withdrawal fails: its total returns to the profile.
     */
    post: operations['rejectApproval']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/audit-log': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List Audit Log
     * @description Lists who changed what, and the changes that were refused, newest first. Nothing is ever removed. Filters combine: a record must pass each of them.
     */
    get: operations['listAuditLog']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/audit-log/verification': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * Verify Audit Log
     * @description Computes links of the audit log's chain again, from their records and the ledger entries that these cover. A request computes some hundred links: while `is_complete` is false, repeat it after `checked`. It may also begin after a head that was kept elsewhere, which the chain must then contain.
     */
    get: operations['verifyAuditLog']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/api-creds/credentials': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    /**
     * List API Credentials
     * @description Lists the customer's API clients, newest first. Secrets are never shown.
     */
    get: operations['listApiCredentials']
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/api-creds/credentials/{client_id}/rotate': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * Rotate API Credentials
     * @description Answers a new secret, which is shown only once. The previous secret is accepted until `grace_seconds` have passed; a secret from before that one no longer. Access tokens stay valid until they expire. The token of this request must have every scope of the client.
     */
    post: operations['rotateApiCredentials']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/api-creds/credentials/{client_id}': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    post?: never
    /**
     * Delete API Credentials
     * @description The secret and all access tokens of the API client are refused within a second. The record stays, with the status DELETED. A repeat changes nothing. Only an operator can undo it, or create another client.
     */
    delete: operations['deleteApiCredentials']
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
}
export interface webhooks {
  'transfer.crypto_deposit.pending': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.crypto_deposit.pending
     * @description Is sent to the webhooks whose event_types have transfer.crypto_deposit.pending, a beginning of it, or *.
     */
    post: operations['on-transfer-crypto-deposit-pending']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.crypto_deposit.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.crypto_deposit.completed
     * @description Is sent to the webhooks whose event_types have transfer.crypto_deposit.completed, a beginning of it, or *.
     */
    post: operations['on-transfer-crypto-deposit-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.crypto_deposit.failed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.crypto_deposit.failed
     * @description Is sent to the webhooks whose event_types have transfer.crypto_deposit.failed, a beginning of it, or *.
     */
    post: operations['on-transfer-crypto-deposit-failed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.crypto_withdrawal.pending': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.crypto_withdrawal.pending
     * @description Is sent to the webhooks whose event_types have transfer.crypto_withdrawal.pending, a beginning of it, or *.
     */
    post: operations['on-transfer-crypto-withdrawal-pending']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.crypto_withdrawal.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.crypto_withdrawal.completed
     * @description Is sent to the webhooks whose event_types have transfer.crypto_withdrawal.completed, a beginning of it, or *.
     */
    post: operations['on-transfer-crypto-withdrawal-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.crypto_withdrawal.failed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.crypto_withdrawal.failed
     * @description Is sent to the webhooks whose event_types have transfer.crypto_withdrawal.failed, a beginning of it, or *.
     */
    post: operations['on-transfer-crypto-withdrawal-failed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.wire_deposit.pending': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.wire_deposit.pending
     * @description Is sent to the webhooks whose event_types have transfer.wire_deposit.pending, a beginning of it, or *.
     */
    post: operations['on-transfer-wire-deposit-pending']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.wire_deposit.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.wire_deposit.completed
     * @description Is sent to the webhooks whose event_types have transfer.wire_deposit.completed, a beginning of it, or *.
     */
    post: operations['on-transfer-wire-deposit-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.wire_deposit.failed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.wire_deposit.failed
     * @description Is sent to the webhooks whose event_types have transfer.wire_deposit.failed, a beginning of it, or *.
     */
    post: operations['on-transfer-wire-deposit-failed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.wire_withdrawal.pending': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.wire_withdrawal.pending
     * @description Is sent to the webhooks whose event_types have transfer.wire_withdrawal.pending, a beginning of it, or *.
     */
    post: operations['on-transfer-wire-withdrawal-pending']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.wire_withdrawal.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.wire_withdrawal.completed
     * @description Is sent to the webhooks whose event_types have transfer.wire_withdrawal.completed, a beginning of it, or *.
     */
    post: operations['on-transfer-wire-withdrawal-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.wire_withdrawal.failed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.wire_withdrawal.failed
     * @description Is sent to the webhooks whose event_types have transfer.wire_withdrawal.failed, a beginning of it, or *.
     */
    post: operations['on-transfer-wire-withdrawal-failed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.internal_transfer_debit.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.internal_transfer_debit.completed
     * @description Is sent to the webhooks whose event_types have transfer.internal_transfer_debit.completed, a beginning of it, or *.
     */
    post: operations['on-transfer-internal-transfer-debit-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.internal_transfer_credit.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.internal_transfer_credit.completed
     * @description Is sent to the webhooks whose event_types have transfer.internal_transfer_credit.completed, a beginning of it, or *.
     */
    post: operations['on-transfer-internal-transfer-credit-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.paxos_transfer_credit.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.paxos_transfer_credit.completed
     * @description Is sent to the webhooks whose event_types have transfer.paxos_transfer_credit.completed, a beginning of it, or *.
     */
    post: operations['on-transfer-paxos-transfer-credit-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'transfer.paxos_transfer_debit.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * transfer.paxos_transfer_debit.completed
     * @description Is sent to the webhooks whose event_types have transfer.paxos_transfer_debit.completed, a beginning of it, or *.
     */
    post: operations['on-transfer-paxos-transfer-debit-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'orchestration.processing': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * orchestration.processing
     * @description Is sent to the webhooks whose event_types have orchestration.processing, a beginning of it, or *.
     */
    post: operations['on-orchestration-processing']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'orchestration.completed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * orchestration.completed
     * @description Is sent to the webhooks whose event_types have orchestration.completed, a beginning of it, or *.
     */
    post: operations['on-orchestration-completed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'orchestration.failed': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * orchestration.failed
     * @description Is sent to the webhooks whose event_types have orchestration.failed, a beginning of it, or *.
     */
    post: operations['on-orchestration-failed']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'identity.approved': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * identity.approved
     * @description Is sent to the webhooks whose event_types have identity.approved, a beginning of it, or *.
     */
    post: operations['on-identity-approved']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'identity.denied': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * identity.denied
     * @description Is sent to the webhooks whose event_types have identity.denied, a beginning of it, or *.
     */
    post: operations['on-identity-denied']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'identity.disabled': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * identity.disabled
     * @description Is sent to the webhooks whose event_types have identity.disabled, a beginning of it, or *.
     */
    post: operations['on-identity-disabled']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'account.approved': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * account.approved
     * @description Is sent to the webhooks whose event_types have account.approved, a beginning of it, or *.
     */
    post: operations['on-account-approved']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'account.denied': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * account.denied
     * @description Is sent to the webhooks whose event_types have account.denied, a beginning of it, or *.
     */
    post: operations['on-account-denied']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'account.disabled': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * account.disabled
     * @description Is sent to the webhooks whose event_types have account.disabled, a beginning of it, or *.
     */
    post: operations['on-account-disabled']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'statement.generated': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * statement.generated
     * @description Is sent to the webhooks whose event_types have statement.generated, a beginning of it, or *.
     */
    post: operations['on-statement-generated']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'statement.paid': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * statement.paid
     * @description Is sent to the webhooks whose event_types have statement.paid, a beginning of it, or *.
     */
    post: operations['on-statement-paid']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'fiat_account.approved': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * fiat_account.approved
     * @description Is sent to the webhooks whose event_types have fiat_account.approved, a beginning of it, or *.
     */
    post: operations['on-fiat-account-approved']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'fiat_account.rejected': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * fiat_account.rejected
     * @description Is sent to the webhooks whose event_types have fiat_account.rejected, a beginning of it, or *.
     */
    post: operations['on-fiat-account-rejected']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'crypto_destination_address.approved': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * crypto_destination_address.approved
     * @description Is sent to the webhooks whose event_types have crypto_destination_address.approved, a beginning of it, or *.
     */
    post: operations['on-crypto-destination-address-approved']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'crypto_destination_address.rejected': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * crypto_destination_address.rejected
     * @description Is sent to the webhooks whose event_types have crypto_destination_address.rejected, a beginning of it, or *.
     */
    post: operations['on-crypto-destination-address-rejected']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'webhook.disabled': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * webhook.disabled
     * @description Is sent to the webhooks whose event_types have webhook.disabled, a beginning of it, or *.
     */
    post: operations['on-webhook-disabled']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'approval.requested': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * approval.requested
     * @description Is sent to the webhooks whose event_types have approval.requested, a beginning of it, or *.
     */
    post: operations['on-approval-requested']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'approval.approved': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * approval.approved
     * @description Is sent to the webhooks whose event_types have approval.approved, a beginning of it, or *.
     */
    post: operations['on-approval-approved']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'approval.rejected': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * approval.rejected
     * @description Is sent to the webhooks whose event_types have approval.rejected, a beginning of it, or *.
     */
    post: operations['on-approval-rejected']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  'approval.expired': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    /**
     * approval.expired
     * @description Is sent to the webhooks whose event_types have approval.expired, a beginning of it, or *.
     */
    post: operations['on-approval-expired']
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
}
export interface components {
  schemas: {
    Problem: {
      /** @description The URI of a page that explains the problem, or about:blank. */
      type: string
      title: string
      status: number
      /** @description What is wrong: the field and the rule. */
      detail: string
      /** @description Facts about the problem; its fields depend on `type`. */
      meta?: {
        [key: string]: unknown
      }
      /** @description Of a 400: the fields that are wrong. Where the request breaks its schema, all of them, at most 20; otherwise those that `detail` is about. Of a 404: those of the body that name the record. */
      errors?: {
        /** @description The field, as a JSON pointer: #/destination/crypto/network. */
        pointer: string
        detail: string
      }[]
    }
    Transfer: {
      /**
       * Format: uuid
       * @description Transfer id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * Format: uuid
       * @description Profile whose balance is debited or credited.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id: string
      /**
       * Format: uuid
       * @description Identity associated with the transfer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id?: string
      /**
       * Format: uuid
       * @description Account associated with the transfer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id?: string
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id?: string
      /**
       * @description Transfer type.
       * @enum {string}
       */
      type:
        | 'INTERNAL_TRANSFER_DEBIT'
        | 'INTERNAL_TRANSFER_CREDIT'
        | 'CRYPTO_DEPOSIT'
        | 'CRYPTO_WITHDRAWAL'
        | 'WIRE_DEPOSIT'
        | 'WIRE_WITHDRAWAL'
        | 'SEN_DEPOSIT'
        | 'SEN_WITHDRAWAL'
        | 'BANK_DEPOSIT'
        | 'BANK_WITHDRAWAL'
        | 'PAXOS_TRANSFER_DEBIT'
        | 'PAXOS_TRANSFER_CREDIT'
        | 'SIGNET_DEPOSIT'
        | 'SIGNET_WITHDRAWAL'
        | 'CBIT_WITHDRAWAL'
        | 'CBIT_DEPOSIT'
        | 'CUBIX_DEPOSIT'
        | 'CUBIX_WITHDRAWAL'
        | 'RTP_DEPOSIT'
      /**
       * @description Direction.
       * @enum {string}
       */
      direction: 'CREDIT' | 'DEBIT'
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'PENDING' | 'COMPLETED' | 'FAILED'
      /** @description Finer-grained explanation of the status. */
      secondary_status?: {
        /** @enum {string} */
        name:
          | 'TRAVEL_RULE_INFO_REQUESTED'
          | 'TRAVEL_RULE_REJECTED'
          | 'CUSTOMER_REJECTED'
          | 'PENDING_CUSTOMER_APPROVAL'
        detail: string
      }
      /** @description Why the transfer is in its state, where there is more to say. */
      status_details?: {
        missing_trustline?: {
          message: string
          destination_address: string
          asset: string
        }
        max_rent_exceeded?: {
          message: string
          destination_address: string
        }
        stale_fee_quote?: {
          message: string
        }
        invalid_destination_address?: {
          message: string
          destination_address: string
        }
        pending_customer_approval?: {
          message: string
          /** @description The approval that it waits for; absent where a magic address simulates it. */
          approval_id?: string
          /** @description How many different approvers must approve. */
          required?: number
          /** @description The role that approvers need. */
          role?: string
        }
        conflicting_transaction?: {
          message: string
        }
      }
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset: string
      /** @description Asset whose balance was affected; differs from `asset` only with a conversion. */
      balance_asset?: string
      /**
       * @description Amount sent.
       * @example 25.5
       */
      amount: string
      /**
       * @description Fee paid.
       * @example 25.5
       */
      fee: string
      /**
       * @description Balance change: amount minus fee for deposits, amount plus fee for withdrawals.
       * @example 25.5
       */
      total: string
      /** @description USD value of amount plus fee at the time of the transfer. */
      notional_value?: string
      /** @description Destination crypto address. */
      destination_address?: string
      /**
       * @description Blockchain network.
       * @example ETHEREUM
       * @enum {string}
       */
      crypto_network?:
        | 'BITCOIN'
        | 'ETHEREUM'
        | 'BITCOIN_CASH'
        | 'LITECOIN'
        | 'SOLANA'
        | 'POLYGON_POS'
        | 'BASE'
        | 'ARBITRUM_ONE'
        | 'STELLAR'
        | 'INK'
        | 'XLAYER'
      /** @description On-chain transaction hash. */
      crypto_tx_hash?: string
      /** @description Output index or output address. */
      crypto_tx_index?: string
      /** @description Conversion details. */
      auto_conversion?: {
        from_transfer_id?: string
        to_transfer_id?: string
      }
      /**
       * Format: uuid
       * @description Links the debit and credit sides of an internal transfer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      group_id?: string
      /**
       * Format: uuid
       * @description For fiat withdrawals, the owner's fiat account.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      fiat_account_id?: string
      /** @description Memo included with the transfer as an identifier. */
      memo?: string
      /**
       * @description Up to 6 pairs of strings; each key and value at most 100 characters.
       * @example {
       *       "order": "1041"
       *     }
       */
      metadata?: {
        [key: string]: string
      }
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
    }
    LedgerEntry: {
      /**
       * @description CREATED: the transfer was made. SETTLED: it ended. REFUNDED: it failed, and the money came back.
       * @enum {string}
       */
      event: 'CREATED' | 'SETTLED' | 'REFUNDED'
      /** @description Its place among the entries of the event. */
      position: number
      /**
       * @description `profile`, or the account of the platform that is the other side.
       * @example in_flight:ETHEREUM
       */
      account: string
      /**
       * Format: uuid
       * @description The profile, for `profile`.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id?: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset: string
      /**
       * @description Change of the account: negative for a debit.
       * @example -25.5
       */
      amount: string
      /**
       * @description Available balance of the profile before the entry.
       * @example 25.5
       */
      balance_before?: string
      /**
       * @description Available balance of the profile after the entry.
       * @example 25.5
       */
      balance_after?: string
      /** @description Place among the changes of this balance. */
      sequence?: number
      /**
       * Format: date-time
       * @description Time of the entry.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
    }
    NetworkTransaction: {
      /** @description Hash of the transaction. */
      crypto_tx_hash: string
      /**
       * @description SIGNED: kept, not accepted by the network yet. BROADCAST: waits for the network. REPLACED: signed again for a higher fee; either may be mined. ENDED: the transfer has ended with it.
       * @enum {string}
       */
      state: 'SIGNED' | 'BROADCAST' | 'REPLACED' | 'ENDED'
      /**
       * Format: date-time
       * @description When it was signed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      signed_at?: string
      /**
       * Format: date-time
       * @description When the network accepted it first.
       * @example 2026-01-31T09:30:00.123456Z
       */
      broadcast_at?: string
      /** @description While it is in a block and not confirmed: the blocks from its own to the newest. */
      confirmations?: number
      /** @description How many make it final. Absent where the node decides, as with `finalized`. */
      confirmations_needed?: number
      /**
       * Format: date-time
       * @description When another took its place.
       * @example 2026-01-31T09:30:00.123456Z
       */
      replaced_at?: string
    }
    TransferFees: {
      /** @description The fee quote that the withdrawal used. It is deleted 30 days after its end. Without a quote, the fee is that of the schedule. */
      quote?: {
        /**
         * Format: uuid
         * @description The `fee_id` of the withdrawal.
         * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
         */
        id: string
        /**
         * @description The quoted fee, in the asset of the transfer.
         * @example 25.5
         */
        fee: string
        /**
         * Format: date-time
         * @description When it was quoted.
         * @example 2026-01-31T09:30:00.123456Z
         */
        created_at: string
        /**
         * Format: date-time
         * @description End of the guarantee.
         * @example 2026-01-31T09:30:00.123456Z
         */
        expires_at: string
      }
      /** @description Absent before the end, and on a simulated network. */
      network_fee?: {
        /**
         * @description Asset, by its ticker.
         * @example USDP
         */
        asset: string
        /**
         * @description What the network took for its transaction.
         * @example 25.5
         */
        amount: string
      }
      /**
       * @description The network fee in the asset of the transfer, by the prices of its end, rounded up to at most eight decimals.
       * @example 25.5
       */
      network_fee_value?: string
      /**
       * @description The fee charged less `network_fee_value`: what the platform has won, or lost where it is negative. A fee that was given back counts as nothing.
       * @example -0.25
       */
      difference?: string
    }
    AuditLogRecord: {
      /**
       * Format: uuid
       * @description Record id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: date-time
       * @description When the change was made or refused.
       * @example 2026-01-31T09:30:00.123456Z
       */
      at: string
      /** @description Who made the change. */
      actor: {
        /**
         * @description API_CLIENT: a program of the customer. OPERATOR: a person who signed in. WORKER: a loop of Bursar. COMMAND_LINE: a user of the operating system.
         * @enum {string}
         */
        type: 'API_CLIENT' | 'OPERATOR' | 'WORKER' | 'COMMAND_LINE'
        /** @description Id of the API client or operator, name of the loop, or name of the user. */
        id: string
      }
      /** @description What was done: the type of the subject, a dot and a verb. */
      action: string
      /** @description The record that was changed. */
      subject: {
        /** @description Type of the record that was changed. */
        type: string
        /** @description Its id. */
        id: string
      }
      /**
       * Format: uuid
       * @description The request, as in `request_id` of problems. Absent where there was none.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      request_id?: string
      /** @description The address that the request came from. */
      ip?: string
      /**
       * @description DONE: the change was made. REFUSED: the actor may not make it, or a policy forbids it.
       * @enum {string}
       */
      outcome: 'DONE' | 'REFUSED'
      /** @description Of configuration only: the values that were changed. Never secrets or personal values. */
      changes?: {
        /** @description Values before. */
        before?: {
          [key: string]: unknown
        }
        /** @description Values after. */
        after?: {
          [key: string]: unknown
        }
      }
    }
    Approval: {
      /**
       * Format: uuid
       * @description Id of the approval.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /** @description What is to be approved. */
      subject: {
        /** @description `transfer`, or the kind of record that is changed. */
        type: string
        /** @description The transfer, or the record that is changed. */
        id: string
      }
      /**
       * @description CANCELLED: its transfer ended otherwise. USED: its change was made.
       * @enum {string}
       */
      status: 'PENDING' | 'APPROVED' | 'REJECTED' | 'EXPIRED' | 'CANCELLED' | 'USED'
      /** @description How many approvers have approved. */
      approvals: number
      /** @description How many different approvers must approve. */
      required: number
      /** @description The role that approvers need. */
      role: string
      /** @description The rule that requires the approval. */
      rule_id?: string
      /** @description The version of the policy that the rule is of. */
      policy_version: number
      /** @description Who asked for it, and may not approve it. */
      initiator: {
        /**
         * @description Kind of actor.
         * @enum {string}
         */
        type: 'API_CLIENT' | 'OPERATOR' | 'WORKER' | 'COMMAND_LINE'
        /** @description The actor. */
        id: string
      }
      /** @description The change, with secrets as their SHA-256. */
      change?: {
        [key: string]: unknown
      }
      /** @description In the order in which they were made. */
      decisions: {
        /**
         * Format: uuid
         * @description The approver.
         * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
         */
        approver_id: string
        /**
         * @description What the approver signed.
         * @enum {string}
         */
        decision: 'APPROVE' | 'REJECT'
        /**
         * Format: date-time
         * @description When the decision was recorded.
         * @example 2026-01-31T09:30:00.123456Z
         */
        created_at: string
      }[]
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Without enough approvals by then, it is EXPIRED.
       * @example 2026-01-31T09:30:00.123456Z
       */
      deadline: string
      /**
       * Format: date-time
       * @description When it became REJECTED, EXPIRED, CANCELLED or USED.
       * @example 2026-01-31T09:30:00.123456Z
       */
      ended_at?: string
    }
    OrchestrationOfTransfer: {
      /**
       * Format: uuid
       * @description The orchestration.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'PROCESSING' | 'COMPLETED' | 'FAILED'
      /**
       * @description Whether the transfer brought the money, or took it on.
       * @enum {string}
       */
      role: 'SOURCE' | 'DESTINATION'
      /**
       * Format: uuid
       * @description The transfer that brought the money.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      source_transfer_id?: string
      /**
       * Format: uuid
       * @description The transfer that took the money on.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      destination_transfer_id?: string
    }
    TransferStatusChange: {
      /**
       * Format: uuid
       * @description The transfer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description Transfer type.
       * @enum {string}
       */
      type:
        | 'INTERNAL_TRANSFER_DEBIT'
        | 'INTERNAL_TRANSFER_CREDIT'
        | 'CRYPTO_DEPOSIT'
        | 'CRYPTO_WITHDRAWAL'
        | 'WIRE_DEPOSIT'
        | 'WIRE_WITHDRAWAL'
        | 'SEN_DEPOSIT'
        | 'SEN_WITHDRAWAL'
        | 'BANK_DEPOSIT'
        | 'BANK_WITHDRAWAL'
        | 'PAXOS_TRANSFER_DEBIT'
        | 'PAXOS_TRANSFER_CREDIT'
        | 'SIGNET_DEPOSIT'
        | 'SIGNET_WITHDRAWAL'
        | 'CBIT_WITHDRAWAL'
        | 'CBIT_DEPOSIT'
        | 'CUBIX_DEPOSIT'
        | 'CUBIX_WITHDRAWAL'
        | 'RTP_DEPOSIT'
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'PENDING' | 'COMPLETED' | 'FAILED'
      /**
       * Format: uuid
       * @description Profile whose balance the transfer changes.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id: string
      /** @description The `ref_id` of the record. */
      ref_id?: string
      /**
       * @description Blockchain network.
       * @example ETHEREUM
       * @enum {string}
       */
      crypto_network?:
        | 'BITCOIN'
        | 'ETHEREUM'
        | 'BITCOIN_CASH'
        | 'LITECOIN'
        | 'SOLANA'
        | 'POLYGON_POS'
        | 'BASE'
        | 'ARBITRUM_ONE'
        | 'STELLAR'
        | 'INK'
        | 'XLAYER'
      /** @description On-chain transaction hash. Absent while a withdrawal is PENDING. */
      crypto_tx_hash?: string
      /** @description Output index or output address. */
      crypto_tx_index?: string
      /** @description Memo of the transfer. */
      memo?: string
    }
    TransferStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type:
        | 'transfer.crypto_deposit.pending'
        | 'transfer.crypto_deposit.completed'
        | 'transfer.crypto_deposit.failed'
        | 'transfer.crypto_withdrawal.pending'
        | 'transfer.crypto_withdrawal.completed'
        | 'transfer.crypto_withdrawal.failed'
        | 'transfer.wire_deposit.pending'
        | 'transfer.wire_deposit.completed'
        | 'transfer.wire_deposit.failed'
        | 'transfer.wire_withdrawal.pending'
        | 'transfer.wire_withdrawal.completed'
        | 'transfer.wire_withdrawal.failed'
        | 'transfer.internal_transfer_debit.completed'
        | 'transfer.internal_transfer_credit.completed'
        | 'transfer.paxos_transfer_credit.completed'
        | 'transfer.paxos_transfer_debit.completed'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'transfer_status_change'
      object: components['schemas']['TransferStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    OrchestrationStatusChange: {
      /**
       * Format: uuid
       * @description The orchestration.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /** @description The `ref_id` of the record. */
      ref_id?: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'PROCESSING' | 'COMPLETED' | 'FAILED'
      /**
       * Format: uuid
       * @description Rule that initiated it.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      orchestration_rule_id?: string
    }
    OrchestrationStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type: 'orchestration.processing' | 'orchestration.completed' | 'orchestration.failed'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'orchestration_status_change'
      object: components['schemas']['OrchestrationStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    IdentitySummaryStatusChange: {
      /**
       * Format: uuid
       * @description Id of the change: that of the event.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description The identity.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id: string
      /**
       * @description summary_status before the change.
       * @enum {string}
       */
      old_summary_status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
      /**
       * @description summary_status after the change.
       * @enum {string}
       */
      new_summary_status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
    }
    IdentitySummaryStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type: 'identity.approved' | 'identity.denied' | 'identity.disabled'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'identity_summary_status_change'
      object: components['schemas']['IdentitySummaryStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    AccountSummaryStatusChange: {
      /**
       * Format: uuid
       * @description Id of the change: that of the event.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description The account.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id: string
      /**
       * @description summary_status before the change.
       * @enum {string}
       */
      old_summary_status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
      /**
       * @description summary_status after the change.
       * @enum {string}
       */
      new_summary_status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
    }
    AccountSummaryStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type: 'account.approved' | 'account.denied' | 'account.disabled'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'account_summary_status_change'
      object: components['schemas']['AccountSummaryStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    StatementStatusChange: {
      /**
       * Format: uuid
       * @description The statement.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /** @description The `ref_id` of the record. */
      ref_id: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'STATEMENT_STATUS_GENERATED' | 'STATEMENT_STATUS_PAID'
      /**
       * Format: date-time
       * @description Start of the period covered.
       * @example 2026-01-31T09:30:00.123456Z
       */
      period_start: string
      /**
       * Format: date-time
       * @description End of the period covered: its last microsecond.
       * @example 2026-01-31T09:30:00.123456Z
       */
      period_end: string
    }
    StatementStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type: 'statement.generated' | 'statement.paid'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'statement_status_change'
      object: components['schemas']['StatementStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    FiatAccountStatusChange: {
      /**
       * Format: uuid
       * @description The fiat account.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'PENDING' | 'APPROVED' | 'REJECTED'
    }
    FiatAccountStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type: 'fiat_account.approved' | 'fiat_account.rejected'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'fiat_account_status_change'
      object: components['schemas']['FiatAccountStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    CryptoDestinationAddressStatusChange: {
      /**
       * Format: uuid
       * @description The address of the address book.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description Blockchain network.
       * @example ETHEREUM
       * @enum {string}
       */
      crypto_network:
        | 'BITCOIN'
        | 'ETHEREUM'
        | 'BITCOIN_CASH'
        | 'LITECOIN'
        | 'SOLANA'
        | 'POLYGON_POS'
        | 'BASE'
        | 'ARBITRUM_ONE'
        | 'STELLAR'
        | 'INK'
        | 'XLAYER'
      /** @description The address, as it was sent. */
      address: string
      /**
       * @description Only an APPROVED address can be paid by its id.
       * @enum {string}
       */
      status: 'PENDING' | 'APPROVED' | 'REJECTED'
    }
    CryptoDestinationAddressStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type: 'crypto_destination_address.approved' | 'crypto_destination_address.rejected'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'crypto_destination_address_status_change'
      object: components['schemas']['CryptoDestinationAddressStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    WebhookStatusChange: {
      /**
       * Format: uuid
       * @description The webhook.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /** @description Its name. */
      name: string
      /**
       * Format: date-time
       * @description The first failure after the last success.
       * @example 2026-01-31T09:30:00.123456Z
       */
      failing_since: string
    }
    WebhookStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type: 'webhook.disabled'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'webhook_status_change'
      object: components['schemas']['WebhookStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    ApprovalStatusChange: {
      /**
       * Format: uuid
       * @description The approval.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /** @description What is to be approved. */
      subject: {
        /** @description `transfer`, or the kind of record that is changed. */
        type: string
        /** @description The transfer, or the record that is changed. */
        id: string
      }
      /**
       * @description CANCELLED: its transfer ended otherwise. USED: its change was made.
       * @enum {string}
       */
      status: 'PENDING' | 'APPROVED' | 'REJECTED' | 'EXPIRED' | 'CANCELLED' | 'USED'
      /** @description How many approvers have approved. */
      approvals: number
      /** @description How many different approvers must approve. */
      required: number
    }
    ApprovalStatusChangeEvent: {
      /**
       * Format: uuid
       * @description Event id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description What happened.
       * @enum {string}
       */
      type: 'approval.requested' | 'approval.approved' | 'approval.rejected' | 'approval.expired'
      /**
       * @description Type of the object.
       * @enum {string}
       */
      object_type: 'approval_status_change'
      object: components['schemas']['ApprovalStatusChange']
      /**
       * Format: date-time
       * @description When the status changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /** @description Number of webhooks that get the event and to which no delivery has succeeded yet. */
      undelivered_webhooks: number
    }
    Event:
      | components['schemas']['TransferStatusChangeEvent']
      | components['schemas']['OrchestrationStatusChangeEvent']
      | components['schemas']['IdentitySummaryStatusChangeEvent']
      | components['schemas']['AccountSummaryStatusChangeEvent']
      | components['schemas']['StatementStatusChangeEvent']
      | components['schemas']['FiatAccountStatusChangeEvent']
      | components['schemas']['CryptoDestinationAddressStatusChangeEvent']
      | components['schemas']['WebhookStatusChangeEvent']
      | components['schemas']['ApprovalStatusChangeEvent']
    WebhookDelivery: {
      /**
       * Format: uuid
       * @description Id of the delivery: that of its event.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description The webhook.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      webhook_id: string
      /**
       * @description Type of the event.
       * @example transfer.crypto_withdrawal.completed
       */
      event_type?: string
      /**
       * Format: uuid
       * @description The record whose status changed.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      object_id: string
      /**
       * @description FAILED: no attempt succeeded, and none is left. Recover or resend starts again.
       * @enum {string}
       */
      status: 'PENDING' | 'DELIVERED' | 'FAILED'
      /** @description Attempts made in all. */
      attempts: number
      /**
       * Format: date-time
       * @description When the next attempt is due.
       * @example 2026-01-31T09:30:00.123456Z
       */
      next_attempt_at?: string
      /**
       * Format: date-time
       * @description Time of the event.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description When it was DELIVERED or FAILED.
       * @example 2026-01-31T09:30:00.123456Z
       */
      ended_at?: string
    }
    WebhookAttempt: {
      /**
       * Format: uuid
       * @description Id of the attempt.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /** @description Its number. */
      attempt: number
      /** @description Status of the answer. Absent: no answer came. */
      status_code?: number
      /** @description Why the attempt failed. */
      error?: string
      /** @description How long it took, in milliseconds. */
      duration_ms: number
      /** @description The first bytes of the answer, 1 KiB at most. */
      response?: string
      /**
       * Format: date-time
       * @description When it was made.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
    }
    DeliveryWithAttempts: {
      delivery: components['schemas']['WebhookDelivery']
      /** @description Name of the webhook. */
      webhook_name: string
      /** @description The latest attempts, oldest first. */
      attempts: components['schemas']['WebhookAttempt'][]
    }
    TransferVolume: {
      /**
       * @description Type of the transfers.
       * @example CRYPTO_WITHDRAWAL
       */
      type: string
      /**
       * @description Direction of the transfers.
       * @enum {string}
       */
      direction: 'CREDIT' | 'DEBIT'
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'PENDING' | 'COMPLETED' | 'FAILED'
      /** @description Number of transfers. */
      count: number
      /**
       * @description Sum of their amounts.
       * @example 25.5
       */
      amount: string
    }
    Orchestration: {
      /**
       * Format: uuid
       * @description Orchestration id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Target profile: whose balance the money is taken from.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id: string
      /**
       * Format: uuid
       * @description Identity.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id?: string
      /**
       * Format: uuid
       * @description Account.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id?: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id?: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'PROCESSING' | 'COMPLETED' | 'FAILED'
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      source_asset: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      destination_asset: string
      /**
       * @description Amount of the source asset.
       * @example 25.5
       */
      source_amount: string
      /** @description The deposit that started it, or the transfer that debits its source profile. */
      source_transfer?: {
        /**
         * Format: uuid
         * @description Transfer id.
         * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
         */
        transfer_id: string
        /**
         * @description Status.
         * @enum {string}
         */
        status?: 'PENDING' | 'COMPLETED' | 'FAILED'
      }
      /** @description The transfer to the destination, once it is made. */
      destination_transfer?: {
        /**
         * Format: uuid
         * @description Transfer id.
         * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
         */
        transfer_id: string
        /**
         * @description Status.
         * @enum {string}
         */
        status?: 'PENDING' | 'COMPLETED' | 'FAILED'
      }
      /** @description Why the orchestration failed. */
      fail_reason?: {
        detail: string
      }
      /** @description Where the money comes from. */
      source: {
        crypto?: {
          /**
           * Format: uuid
           * @description Id of the customer's own deposit address, or of the address book.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          address_id?: string
          /**
           * Format: uuid
           * @description The same as address_id.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          crypto_address_id?: string
          /** @description Crypto address. */
          address: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          network:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
        }
        fiat?: {
          /**
           * Format: uuid
           * @description Deposit instructions.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          deposit_instructions_id: string
          /** @description The memo_id of the deposit instructions. */
          memo: string
        }
        profile?: {
          /**
           * Format: uuid
           * @description Profile.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
        }
      }
      /** @description Where the money goes. */
      destination: {
        crypto?: {
          /**
           * Format: uuid
           * @description Id of the customer's own deposit address, or of the address book.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          address_id?: string
          /**
           * Format: uuid
           * @description The same as address_id.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          crypto_address_id?: string
          /** @description Crypto address. */
          address: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          network:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
        }
        fiat?: {
          /**
           * Format: uuid
           * @description Fiat account that is paid.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          bank_account_id: string
          /** @description Memo that goes with the money. */
          memo?: string
        }
        profile?: {
          /**
           * Format: uuid
           * @description Profile.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
        }
      }
      /**
       * Format: uuid
       * @description Rule that initiated it.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      orchestration_rule_id?: string
      /**
       * @description Up to 6 pairs of strings; each key and value at most 100 characters.
       * @example {
       *       "order": "1041"
       *     }
       */
      metadata?: {
        [key: string]: string
      }
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
    }
    OrchestrationRule: {
      /**
       * Format: uuid
       * @description Rule id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id: string
      /**
       * Format: uuid
       * @description Profile that the deposits are credited to.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'ACTIVE' | 'DELETED'
      /** @description Display name. */
      nickname?: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      source_asset: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      destination_asset: string
      /** @description What triggers the rule. */
      source: {
        crypto?: {
          /**
           * Format: uuid
           * @description The rule's own deposit address.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          address_id: string
          /** @description Address to deposit to. */
          address: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          network:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
        }
        fiat?: {
          /**
           * Format: uuid
           * @description The rule's own deposit instructions.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          deposit_instructions_id: string
          /** @description Memo that a deposit must carry. */
          memo_id: string
          /**
           * @description Fiat network.
           * @enum {string}
           */
          network: 'WIRE'
          /**
           * @description Kind of bank account.
           * @enum {string}
           */
          account_type?: 'CHECKING' | 'SAVINGS'
        }
        /** @description A balance of a profile. */
        profile?: {
          /**
           * Format: uuid
           * @description Profile.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
        }
      }
      /** @description Where the money goes. */
      destination: {
        crypto?: {
          /**
           * Format: uuid
           * @description Id of the customer's own deposit address, or of the address book.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          address_id?: string
          /**
           * Format: uuid
           * @description The same as address_id.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          crypto_address_id?: string
          /** @description Crypto address. */
          address: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          network:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
        }
        fiat?: {
          /**
           * Format: uuid
           * @description Fiat account to pay.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          fiat_account_id: string
          /** @description Memo that goes with the money. */
          memo?: string
        }
        /** @description A balance of a profile. */
        profile?: {
          /**
           * Format: uuid
           * @description Profile.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
        }
      }
      /**
       * Format: uuid
       * @description Identity of its orchestrations.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id?: string
      /**
       * Format: uuid
       * @description Account of its orchestrations.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id?: string
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
    }
    Statement: {
      /**
       * Format: uuid
       * @description Statement id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /** @description Client-visible reference. */
      ref_id: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * @description Statement type.
       * @enum {string}
       */
      type: 'STATEMENT_TYPE_USDG_REWARD'
      /**
       * @description Product.
       * @enum {string}
       */
      product: 'USDG_REWARDS'
      /**
       * @description Status.
       * @enum {string}
       */
      status:
        | 'STATEMENT_STATUS_UNSPECIFIED'
        | 'STATEMENT_STATUS_INITIATED'
        | 'STATEMENT_STATUS_GENERATED'
        | 'STATEMENT_STATUS_PAID'
      /** @description Absent until the statement is generated. */
      metadata?: {
        /**
         * @description Reward of the period.
         * @example 25.5
         */
        total_amount: string
      }
      /** @description Balance per asset. Absent until the statement is generated. */
      statement_balances?: {
        /**
         * @description Asset, by its ticker.
         * @example USDP
         */
        asset: string
        /**
         * @description Amount paid so far.
         * @example 25.5
         */
        amount_paid: string
        /**
         * @description Reward of the period.
         * @example 25.5
         */
        total_amount_owed: string
        /** @description The `ref_id` of its payment. Absent when nothing is left to pay. */
        next_payment_ref_id?: string
      }[]
      /**
       * Format: date-time
       * @description Start of the period covered.
       * @example 2026-01-31T09:30:00.123456Z
       */
      period_start: string
      /**
       * Format: date-time
       * @description End of the period covered: its last microsecond.
       * @example 2026-01-31T09:30:00.123456Z
       */
      period_end: string
      /**
       * Format: date-time
       * @description When the statement was generated.
       * @example 2026-01-31T09:30:00.123456Z
       */
      generated_at?: string
      /**
       * Format: date-time
       * @description When the statement was paid.
       * @example 2026-01-31T09:30:00.123456Z
       */
      paid_at?: string
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: uuid
       * @description Groups the versions of a statement. There is one version, so it equals `id`.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      statement_group_id: string
      /** @description Version: 1, because a generated statement never changes. */
      version: number
      /** @description Files of the statement: none, because its amounts are all in the record. */
      files: {
        /** @description Format of the file. */
        format: string
        /** @description Where to download it. */
        url: string
        /**
         * Format: date-time
         * @description When the file was generated.
         * @example 2026-01-31T09:30:00.123456Z
         */
        generated_at: string
      }[]
    }
    StatementPayment: {
      /**
       * Format: uuid
       * @description Payment id: the statement's id, because a statement is paid once.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * Format: uuid
       * @description Profile that is credited.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id: string
      /** @description The `next_payment_ref_id` that the statement had before it was paid. */
      ref_id: string
      /**
       * @description Product.
       * @enum {string}
       */
      product: 'USDG_REWARDS'
      /**
       * Format: uuid
       * @description Profile that is credited.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      payment_destination: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      payment_asset: string
      /**
       * @description Amount.
       * @example 25.5
       */
      payment_amount: string
      /**
       * @description Status: PENDING until the statement is paid, then COMPLETED; never FAILED.
       * @enum {string}
       */
      payment_status: 'PAYMENT_STATUS_PENDING' | 'PAYMENT_STATUS_COMPLETED' | 'PAYMENT_STATUS_FAILED'
      /**
       * Format: uuid
       * @description Id of the transfer that paid it.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      payment_tx_id?: string
      /**
       * Format: date-time
       * @description Creation time of the statement.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description When it was paid.
       * @example 2026-01-31T09:30:00.123456Z
       */
      processed_at?: string
    }
    RewardsStatement: {
      /**
       * Format: uuid
       * @description Statement id: the same as in List Statements.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /** @description Client-visible reference. */
      ref_id: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset_type: string
      /**
       * Format: date-time
       * @description Start of the period covered.
       * @example 2026-01-31T09:30:00.123456Z
       */
      period_start: string
      /**
       * Format: date-time
       * @description End of the period covered: its last microsecond.
       * @example 2026-01-31T09:30:00.123456Z
       */
      period_end: string
      /**
       * @description GENERATING until the amounts are computed, then COMPLETED.
       * @enum {string}
       */
      status: 'STATEMENT_STATUS_GENERATING' | 'STATEMENT_STATUS_COMPLETED'
      /**
       * @description Statement type.
       * @enum {string}
       */
      type: 'STATEMENT_TYPE_MONTHLY_REWARDS'
      /**
       * @description Reward of the period. Absent until it is COMPLETED.
       * @example 25.5
       */
      total_accrued?: string
      /**
       * @description Amount paid so far. Absent until it is COMPLETED.
       * @example 25.5
       */
      amount_paid?: string
      /** @description Files of the statement: none, because its amounts are all in the record. */
      files: {
        /** @description Format of the file. */
        format: string
        /** @description Where to download it. */
        url: string
        /**
         * Format: date-time
         * @description When the file was generated.
         * @example 2026-01-31T09:30:00.123456Z
         */
        generated_at: string
      }[]
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
    }
    RewardRate: {
      /**
       * @description Rate id.
       * @example USDG-2026-01-01
       */
      id: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset_type: string
      /**
       * @description Annual rate: 0.0376 is 3.76 %.
       * @example 0.0376
       */
      rate: string
      /** @description Networks of the asset; the rate is the same on all. */
      networks: (
        | 'BITCOIN'
        | 'ETHEREUM'
        | 'BITCOIN_CASH'
        | 'LITECOIN'
        | 'SOLANA'
        | 'POLYGON_POS'
        | 'BASE'
        | 'ARBITRUM_ONE'
        | 'STELLAR'
        | 'INK'
        | 'XLAYER'
      )[]
      /**
       * Format: date-time
       * @description From when on the rate is in force, until that of the next rate.
       * @example 2026-01-31T09:30:00.123456Z
       */
      effective_at: string
      /**
       * Format: date-time
       * @description When the rate was set.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
    }
    Account: {
      /**
       * Format: uuid
       * @description Account id used in all other interactions.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Primary identity of the account.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id: string
      /** @description Free-text description. */
      description?: string
      /** @description True if disabled by a platform administrator. */
      admin_disabled: boolean
      /** @description True if disabled by the API user. */
      user_disabled: boolean
      /**
       * @description Up to 6 pairs of strings; each key and value at most 100 characters.
       * @example {
       *       "order": "1041"
       *     }
       */
      metadata?: {
        [key: string]: string
      }
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id?: string
      /** @description Additional identities with access to the account. */
      members: {
        /**
         * Format: uuid
         * @description Member id.
         * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
         */
        id: string
        /**
         * Format: uuid
         * @description Identity that has access to the account.
         * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
         */
        identity_id: string
        /**
         * @description The first of the roles. Absent without roles.
         * @enum {string}
         */
        type?: 'BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR'
        /**
         * @description Role of the identity in the account.
         * @default []
         */
        roles: ('BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR')[]
      }[]
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time, of the account or of its primary identity.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
      /**
       * @description DISABLED by either flag, else the summary_status of the primary identity.
       * @enum {string}
       */
      summary_status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
      /**
       * Format: uuid
       * @description Profile created with the account. Absent if none was requested.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id?: string
      /**
       * @description Account type.
       * @default BROKERAGE
       * @enum {string}
       */
      type: 'BROKERAGE' | 'TRADITIONAL_IRA' | 'ROTH_IRA' | 'SEP_IRA' | 'FINANCIAL_ADVISOR'
    }
    HistoricalPrice: {
      /**
       * @description Time-weighted average over the increment that begins at `timestamp`, over its minutes that have a price. At most 8 decimals.
       * @example 63450.125
       */
      average_price: string
      /**
       * Format: date-time
       * @description Start of the increment.
       * @example 2026-01-31T09:30:00.123456Z
       */
      timestamp: string
    }
    Market: {
      /** @enum {string} */
      market:
        | 'ETHEUR'
        | 'ETHUSD'
        | 'BTCEUR'
        | 'BTCUSD'
        | 'PAXGUSD'
        | 'BCHUSD'
        | 'LTCUSD'
        | 'ETHGBP'
        | 'BTCGBP'
        | 'LTCGBP'
        | 'BCHGBP'
        | 'USDPUSD'
        | 'ETHBRL'
        | 'BTCBRL'
        | 'LTCBRL'
        | 'BCHBRL'
        | 'USDPGBP'
        | 'USDPBRL'
        | 'LINKUSD'
        | 'MATICUSD'
        | 'AAVEUSD'
        | 'UNIUSD'
        | 'AAVEMXN'
        | 'BCHMXN'
        | 'BTCMXN'
        | 'ETHMXN'
        | 'LTCMXN'
        | 'USDPMXN'
        | 'AAVEEUR'
        | 'BCHEUR'
        | 'LTCEUR'
        | 'LINKEUR'
        | 'MATICEUR'
        | 'PAXGEUR'
        | 'SOLEUR'
        | 'USDPEUR'
        | 'UNIEUR'
        | 'PYUSDEUR'
        | 'PYUSDGBP'
      /** @description The priced asset. */
      base_asset: string
      /** @description The asset of the price. */
      quote_asset: string
      /**
       * Format: date-time
       * @description Start of the first minute that has a price; absent while none has.
       * @example 2026-01-31T09:30:00.123456Z
       */
      first_time?: string
      /**
       * Format: date-time
       * @description Start of the last minute that has a price.
       * @example 2026-01-31T09:30:00.123456Z
       */
      last_time?: string
      /**
       * @description SIMULATED in a sandbox; REAL when imported or followed. Never both.
       * @enum {string}
       */
      source?: 'SIMULATED' | 'REAL'
    }
    MarketPrice: {
      /** @enum {string} */
      market:
        | 'ETHEUR'
        | 'ETHUSD'
        | 'BTCEUR'
        | 'BTCUSD'
        | 'PAXGUSD'
        | 'BCHUSD'
        | 'LTCUSD'
        | 'ETHGBP'
        | 'BTCGBP'
        | 'LTCGBP'
        | 'BCHGBP'
        | 'USDPUSD'
        | 'ETHBRL'
        | 'BTCBRL'
        | 'LTCBRL'
        | 'BCHBRL'
        | 'USDPGBP'
        | 'USDPBRL'
        | 'LINKUSD'
        | 'MATICUSD'
        | 'AAVEUSD'
        | 'UNIUSD'
        | 'AAVEMXN'
        | 'BCHMXN'
        | 'BTCMXN'
        | 'ETHMXN'
        | 'LTCMXN'
        | 'USDPMXN'
        | 'AAVEEUR'
        | 'BCHEUR'
        | 'LTCEUR'
        | 'LINKEUR'
        | 'MATICEUR'
        | 'PAXGEUR'
        | 'SOLEUR'
        | 'USDPEUR'
        | 'UNIEUR'
        | 'PYUSDEUR'
        | 'PYUSDGBP'
      /**
       * @description The newest price.
       * @example 63450.12
       */
      current_price: string
      /**
       * @description The newest price of 24 to 48 hours before; absent where there is none.
       * @example 62980.5
       */
      yesterday_price?: string
      /**
       * Format: date-time
       * @description Start of the minute of the newest price.
       * @example 2026-01-31T09:30:00.123456Z
       */
      snapshot_at: string
    }
    HistoricalCandle: {
      /**
       * Format: date-time
       * @description Start of the increment.
       * @example 2026-01-31T09:30:00.123456Z
       */
      timestamp: string
      /**
       * @description First price.
       * @example 63450.125
       */
      open: string
      /**
       * @description Highest price.
       * @example 63450.125
       */
      high: string
      /**
       * @description Lowest price.
       * @example 63450.125
       */
      low: string
      /**
       * @description Last price.
       * @example 63450.125
       */
      close: string
      /** @description False where only an average, or a candle that exceeds this increment, is known of some minute; that minute counts with the average, or with that candle. */
      exact: boolean
    }
    Profile: {
      /**
       * Format: uuid
       * @description Profile id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /** @description Unique name of the profile. */
      nickname: string
      /**
       * @description DEFAULT is the profile created with the customer; all others are NORMAL.
       * @enum {string}
       */
      type: 'NORMAL' | 'DEFAULT'
      /** @description Free-text description. */
      description?: string
      /**
       * Format: uuid
       * @description Account that the profile belongs to.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id?: string
      /**
       * Format: date-time
       * @description When it was deactivated.
       * @example 2026-01-31T09:30:00.123456Z
       */
      deactivated_at?: string
    }
    BalanceHistory: {
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset: string
      /** @description The oldest first. The last is now. */
      points: {
        /**
         * Format: date-time
         * @description Moment of the sum.
         * @example 2026-01-31T09:30:00.123456Z
         */
        at: string
        /**
         * @description Sum of the balances.
         * @example 25.5
         */
        available: string
      }[]
    }
    Balance: {
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset: string
      /**
       * @description Spendable amount.
       * @example 25.5
       */
      available: string
      /**
       * @description Amount held by open orders. Always 0, because there are no orders.
       * @example 25.5
       */
      trading: string
    }
    BalanceEntry: {
      /**
       * Format: uuid
       * @description Transfer that changed the balance.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      transfer_id: string
      /**
       * @description CREATED: the transfer was made. REFUNDED: it failed, and the money came back.
       * @enum {string}
       */
      event: 'CREATED' | 'SETTLED' | 'REFUNDED'
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset: string
      /**
       * @description Change of the balance: negative for a debit.
       * @example -25.5
       */
      amount: string
      /**
       * @description Available balance after the change.
       * @example 25.5
       */
      balance_after: string
      /** @description Place among the changes of this balance, from 1 on. There is no gap, so a client can tell that it has all. */
      sequence: number
      /**
       * Format: date-time
       * @description Time of the change.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
    }
    Identity: {
      /**
       * Format: uuid
       * @description Identity id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id: string
      /**
       * @description Kind of identity, and of its details.
       * @enum {string}
       */
      type: 'PERSON' | 'INSTITUTION'
      /**
       * @description Status of the verification.
       * @enum {string}
       */
      status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
      /**
       * @description DISABLED by either flag, else the status.
       * @enum {string}
       */
      summary_status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
      /** @description True if disabled by the API user. */
      user_disabled: boolean
      /** @description True if disabled by a platform administrator. */
      admin_disabled: boolean
      /** @description The same as person_details or institution_details. Absent only with `include_details=false`. */
      details?: {
        [key: string]: unknown
      }
      /** @description A person. Other members are kept, 8 KiB at most in all. */
      person_details?: {
        /** @description First name. */
        first_name: string
        /** @description Last name. */
        last_name: string
        /**
         * Format: date
         * @description Date of birth.
         */
        date_of_birth?: string
        address?: {
          /** @description Text. */
          country?: string
          /** @description Text. */
          address1?: string
          /** @description Text. */
          address2?: string
          /** @description Text. */
          city?: string
          /** @description Text. */
          province?: string
          /** @description Text. */
          zip_code?: string
        } & {
          [key: string]: unknown
        }
        /** @description E-mail address. */
        email?: string
        /** @description Phone number. */
        phone_number?: string
        /** @description Nationality. */
        nationality?: string
      } & {
        [key: string]: unknown
      }
      /** @description An institution. Other members are kept, 8 KiB at most in all. */
      institution_details?: {
        /** @description Name. */
        name: string
        business_address?: {
          /** @description Text. */
          country?: string
          /** @description Text. */
          address1?: string
          /** @description Text. */
          address2?: string
          /** @description Text. */
          city?: string
          /** @description Text. */
          province?: string
          /** @description Text. */
          zip_code?: string
        } & {
          [key: string]: unknown
        }
        /** @description Kind of institution. */
        institution_type?: string
        /** @description E-mail address. */
        email?: string
      } & {
        [key: string]: unknown
      }
      /** @description Tax ids. Answered to the requests that write them, and with `include_details=true`. */
      tax_details?: ({
        /** @description Tax id. */
        tax_payer_id?: string
        /** @description Country that issued the tax id. */
        tax_payer_country?: string
      } & {
        [key: string]: unknown
      })[]
      /** @description True if the law requires no tax details. */
      tax_details_not_required?: boolean
      /** @description Due diligence. Other members are kept, 8 KiB at most in all. Answered to the requests that write it, and with `include_details=true`. */
      customer_due_diligence?: {
        /** @description Estimated yearly income. */
        estimated_yearly_income?: string
        /** @description Expected value of transfers. */
        expected_transfer_value?: string
        /** @description Source of wealth. */
        source_of_wealth?: string
        /** @description Employment status. */
        employment_status?: string
        /** @description Sector of employment. */
        employment_industry_sector?: string
      } & {
        [key: string]: unknown
      }
      /** @description Identities that stand behind an institution. Answered to the requests that write them, and with `include_institution_members=true`. */
      institution_members?: {
        /**
         * Format: uuid
         * @description Member id.
         * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
         */
        id: string
        /**
         * Format: uuid
         * @description Identity that stands behind the institution.
         * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
         */
        identity_id: string
        /** @description Roles of the identity in the institution. */
        roles: (
          | 'BENEFICIAL_OWNER'
          | 'ACCOUNT_OPENER'
          | 'AUTHORIZED_USER'
          | 'MANAGEMENT_CONTROL_PERSON'
          | 'TRUSTEE'
          | 'GRANTOR'
          | 'BENEFICIARY'
        )[]
        /** @description Share of the institution that it owns. */
        ownership?: string
        /** @description Position in the institution. */
        position?: string
        /** @description Name. */
        name?: string
      }[]
      /** @description True if the identity is a merchant. */
      is_merchant?: boolean
      /**
       * Format: date-time
       * @description Time of the last periodic verification.
       * @example 2026-01-31T09:30:00.123456Z
       */
      last_kyc_refresh_date?: string
      /**
       * @description Up to 6 pairs of strings; each key and value at most 100 characters.
       * @example {
       *       "order": "1041"
       *     }
       */
      metadata?: {
        [key: string]: string
      }
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
    }
    StablecoinConversion: {
      /**
       * Format: uuid
       * @description Id of the conversion, and of the transfer that debits it.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Profile whose balances change.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id: string
      /**
       * @description Amount of both assets.
       * @example 25.5
       */
      amount: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      source_asset: string
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      target_asset: string
      /**
       * @description Conversions settle at once.
       * @enum {string}
       */
      status: 'SETTLED'
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id?: string
      /**
       * Format: uuid
       * @description Identity that asked for it.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id?: string
      /**
       * Format: uuid
       * @description Account that asked for it.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id?: string
      /**
       * @description Up to 6 pairs of strings; each key and value at most 100 characters.
       * @example {
       *       "order": "1041"
       *     }
       */
      metadata?: {
        [key: string]: string
      }
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
      /**
       * Format: date-time
       * @description When the balances changed.
       * @example 2026-01-31T09:30:00.123456Z
       */
      settled_at: string
    }
    DepositAddress: {
      /**
       * Format: uuid
       * @description Id of the address.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * Format: uuid
       * @description Profile that is credited.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id: string
      /**
       * @description Blockchain network.
       * @example ETHEREUM
       * @enum {string}
       */
      crypto_network:
        | 'BITCOIN'
        | 'ETHEREUM'
        | 'BITCOIN_CASH'
        | 'LITECOIN'
        | 'SOLANA'
        | 'POLYGON_POS'
        | 'BASE'
        | 'ARBITRUM_ONE'
        | 'STELLAR'
        | 'INK'
        | 'XLAYER'
      /** @description The address. */
      address: string
      /** @description Networks on which a deposit to this address is credited. */
      compatible_crypto_networks: (
        | 'BITCOIN'
        | 'ETHEREUM'
        | 'BITCOIN_CASH'
        | 'LITECOIN'
        | 'SOLANA'
        | 'POLYGON_POS'
        | 'BASE'
        | 'ARBITRUM_ONE'
        | 'STELLAR'
        | 'INK'
        | 'XLAYER'
      )[]
      /**
       * @description What a deposit of a platform-issued stablecoin is credited as.
       * @default NO_CONVERSION
       * @enum {string}
       */
      conversion_target_asset: 'NO_CONVERSION' | 'USD'
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id?: string
      /**
       * Format: uuid
       * @description Identity that deposits; the nil UUID where the record names none.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id: string
      /**
       * Format: uuid
       * @description Account that deposits.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id?: string
      /**
       * @description Up to 6 pairs of strings; each key and value at most 100 characters.
       * @example {
       *       "order": "1041"
       *     }
       */
      metadata?: {
        [key: string]: string
      }
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
    }
    CryptoDestinationAddress: {
      /**
       * Format: uuid
       * @description Id of the address.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * @description Blockchain network.
       * @example ETHEREUM
       * @enum {string}
       */
      crypto_network:
        | 'BITCOIN'
        | 'ETHEREUM'
        | 'BITCOIN_CASH'
        | 'LITECOIN'
        | 'SOLANA'
        | 'POLYGON_POS'
        | 'BASE'
        | 'ARBITRUM_ONE'
        | 'STELLAR'
        | 'INK'
        | 'XLAYER'
      /** @description The address, as it was sent. */
      address: string
      /** @description Display name. */
      nickname: string
      /** @description Whether the customer has marked it. */
      bookmarked: boolean
      /**
       * @description Only an APPROVED address can be paid by its id.
       * @enum {string}
       */
      status: 'PENDING' | 'APPROVED' | 'REJECTED'
      /**
       * Format: date-time
       * @description Of a PENDING address: when it is APPROVED, unless it is rejected before.
       * @example 2026-01-31T09:30:00.123456Z
       */
      cooling_until?: string
      /**
       * Format: uuid
       * @description Identity that owns the address.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id?: string
      /** @description Facts for the travel rule. */
      travelrule_metadata?: {
        [key: string]: unknown
      }
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
    }
    FiatAccount: {
      /**
       * Format: uuid
       * @description Id of the fiat account.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'PENDING' | 'APPROVED' | 'REJECTED'
      /** @description Whose bank account it is: person_details or institution_details. Other members are kept, 8 KiB at most in all. */
      fiat_account_owner: {
        person_details?: {
          /** @description Name. */
          first_name: string
          /** @description Name. */
          last_name: string
        } & {
          [key: string]: unknown
        }
        institution_details?: {
          /** @description Name. */
          name: string
        } & {
          [key: string]: unknown
        }
      } & {
        [key: string]: unknown
      }
      /** @description How the bank account is reached. */
      fiat_network_instructions: {
        wire: {
          /** @description Text. */
          account_number?: string
          /**
           * @description Kind of bank account.
           * @enum {string}
           */
          account_type?: 'CHECKING' | 'SAVINGS'
          fiat_account_owner_address?: {
            /** @description Text. */
            country?: string
            /** @description Text. */
            address1?: string
            /** @description Text. */
            address2?: string
            /** @description Text. */
            city?: string
            /** @description Text. */
            province?: string
            /** @description Text. */
            zip_code?: string
          } & {
            [key: string]: unknown
          }
          routing_details?: {
            /**
             * @description Kind of routing number.
             * @enum {string}
             */
            routing_number_type?: 'ABA' | 'SWIFT'
            /** @description Text. */
            routing_number?: string
            /** @description Text. */
            bank_name?: string
            bank_address?: {
              /** @description Text. */
              country?: string
              /** @description Text. */
              address1?: string
              /** @description Text. */
              address2?: string
              /** @description Text. */
              city?: string
              /** @description Text. */
              province?: string
              /** @description Text. */
              zip_code?: string
            } & {
              [key: string]: unknown
            }
          } & {
            [key: string]: unknown
          }
        } & {
          [key: string]: unknown
        }
      }
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id?: string
      /**
       * Format: uuid
       * @description Identity of the owner.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id?: string
      /**
       * Format: uuid
       * @description Account of the owner.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id?: string
      /**
       * @description Up to 6 pairs of strings; each key and value at most 100 characters.
       * @example {
       *       "order": "1041"
       *     }
       */
      metadata?: {
        [key: string]: string
      }
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
      /**
       * Format: date-time
       * @description When it was deleted: nothing new is paid to it.
       * @example 2026-01-31T09:30:00.123456Z
       */
      deleted_at?: string
    }
    FiatDepositInstructions: {
      /**
       * Format: uuid
       * @description Id of the instructions.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description Customer id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /**
       * Format: uuid
       * @description Profile that is credited.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      profile_id: string
      /** @description Memo that the deposit must carry. */
      memo_id: string
      /**
       * @description Status.
       * @enum {string}
       */
      status: 'VALID' | 'DEPRECATED'
      /**
       * @description Fiat network.
       * @enum {string}
       */
      fiat_network: 'WIRE'
      fiat_network_instructions: {
        wire: {
          /** @description Text. */
          account_number?: string
          /**
           * @description Kind of bank account.
           * @enum {string}
           */
          account_type?: 'CHECKING' | 'SAVINGS'
          fiat_account_owner_address?: {
            /** @description Text. */
            country?: string
            /** @description Text. */
            address1?: string
            /** @description Text. */
            address2?: string
            /** @description Text. */
            city?: string
            /** @description Text. */
            province?: string
            /** @description Text. */
            zip_code?: string
          } & {
            [key: string]: unknown
          }
          routing_details?: {
            /**
             * @description Kind of routing number.
             * @enum {string}
             */
            routing_number_type?: 'ABA' | 'SWIFT'
            /** @description Text. */
            routing_number?: string
            /** @description Text. */
            bank_name?: string
            bank_address?: {
              /** @description Text. */
              country?: string
              /** @description Text. */
              address1?: string
              /** @description Text. */
              address2?: string
              /** @description Text. */
              city?: string
              /** @description Text. */
              province?: string
              /** @description Text. */
              zip_code?: string
            } & {
              [key: string]: unknown
            }
          } & {
            [key: string]: unknown
          }
        } & {
          [key: string]: unknown
        }
      }
      fiat_account_owner: {
        institution_details: {
          name: string
        }
      }
      /**
       * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
       * @example payout-2026-0001
       */
      ref_id?: string
      /**
       * Format: uuid
       * @description Identity that deposits; the nil UUID where the record names none.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      identity_id: string
      /**
       * Format: uuid
       * @description Account that deposits.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      account_id?: string
      /**
       * @description Up to 6 pairs of strings; each key and value at most 100 characters.
       * @example {
       *       "order": "1041"
       *     }
       */
      metadata?: {
        [key: string]: string
      }
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
    }
    Asset: {
      /**
       * @description Asset, by its ticker.
       * @example USDP
       */
      asset: string
      /** @description Name. */
      name: string
      /**
       * @description Kind.
       * @enum {string}
       */
      kind: 'FIAT' | 'STABLECOIN' | 'CRYPTO'
      /** @description Decimals of a balance. */
      decimals: number
      /** @description Worth one USD: it is exchanged for USD, and paid from it. */
      platform_stablecoin: boolean
      /** @description The networks that carry it; none for fiat. */
      networks: {
        /**
         * @description Blockchain network.
         * @example ETHEREUM
         * @enum {string}
         */
        crypto_network:
          | 'BITCOIN'
          | 'ETHEREUM'
          | 'BITCOIN_CASH'
          | 'LITECOIN'
          | 'SOLANA'
          | 'POLYGON_POS'
          | 'BASE'
          | 'ARBITRUM_ONE'
          | 'STELLAR'
          | 'INK'
          | 'XLAYER'
        /** @description Decimals of an amount on this network. */
        decimals: number
        /**
         * @description Scheduled fee of a withdrawal.
         * @example 25.5
         */
        withdrawal_fee: string
        /**
         * @description Smallest amount of one withdrawal.
         * @example 25.5
         */
        withdrawal_minimum: string
        /**
         * @description Largest amount of one withdrawal.
         * @example 25.5
         */
        withdrawal_maximum: string
        /**
         * @description Smaller deposits wait until those at their address reach it together; 0 without a minimum.
         * @example 25.5
         */
        deposit_minimum: string
      }[]
    }
    NetworkRecord: {
      /**
       * @description Blockchain network.
       * @example ETHEREUM
       * @enum {string}
       */
      crypto_network:
        | 'BITCOIN'
        | 'ETHEREUM'
        | 'BITCOIN_CASH'
        | 'LITECOIN'
        | 'SOLANA'
        | 'POLYGON_POS'
        | 'BASE'
        | 'ARBITRUM_ONE'
        | 'STELLAR'
        | 'INK'
        | 'XLAYER'
      /** @description The asset in which the network takes its fees. */
      native_asset: string
      /**
       * @description The connected chain; absent where none is.
       * @enum {string}
       */
      chain?: 'MAIN' | 'TEST' | 'SIMULATED'
      /**
       * @description DELAYED: withdrawals wait for the network. STOPPED: the platform pays nothing there for now, and withdrawals wait. UNAVAILABLE: not connected, and withdrawals are refused.
       * @enum {string}
       */
      status: 'AVAILABLE' | 'DELAYED' | 'STOPPED' | 'UNAVAILABLE'
      /** @description Confirmations that a deposit or withdrawal needs, on a real chain. */
      confirmations?: number
      /**
       * @description The chain's own finality, where it takes the place of `confirmations`.
       * @enum {string}
       */
      finality?: 'SAFE' | 'FINALIZED'
      /**
       * @description ESTIMATED: a quote follows the cost of the chain, and the schedule may not cover it.
       * @enum {string}
       */
      fees: 'SCHEDULED' | 'ESTIMATED'
      /** @description Whether a withdrawal can carry a memo. */
      memo: boolean
      assets: {
        /**
         * @description Asset, by its ticker.
         * @example USDP
         */
        asset: string
        /** @description Decimals of an amount on this network. */
        decimals: number
        /**
         * @description Scheduled fee of a withdrawal.
         * @example 25.5
         */
        withdrawal_fee: string
        /**
         * @description Smallest amount of one withdrawal.
         * @example 25.5
         */
        withdrawal_minimum: string
        /**
         * @description Largest amount of one withdrawal.
         * @example 25.5
         */
        withdrawal_maximum: string
        /**
         * @description Smaller deposits wait until those at their address reach it together; 0 without a minimum.
         * @example 25.5
         */
        deposit_minimum: string
      }[]
      /** @description Figures of the whole deployment, for operators with the scope `operators:read_network` alone. */
      for_operators?: {
        /** @description Whether its node answers; absent where it is simulated. */
        reachable?: boolean
        /** @description Why it does not. */
        error?: string
        /** @description The newest block of the node. */
        height?: number
        /** @description The hot wallet's amount of the network's own asset, which pays the fees. */
        hot_wallet?: {
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          asset: string
          /**
           * @description What the hot wallet holds.
           * @example 25.5
           */
          amount: string
          /**
           * @description What it should hold at least.
           * @example 25.5
           */
          low_mark?: string
          /** @description Whether it holds less. */
          below_low_mark: boolean
        }
        /** @description Empty where the network is simulated: nothing is on a chain. */
        custody: {
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          asset: string
          /**
           * @description What the ledgers of all customers have there.
           * @example 25.5
           */
          in_custody: string
          /**
           * @description What the wallet holds; absent while its node does not answer.
           * @example 25.5
           */
          held?: string
          /** @description Held beyond custody. Payments under way explain a small difference. */
          difference?: string
        }[]
        /** @description Withdrawals that have not ended. */
        in_flight: number
        waiting: {
          /** @description Why they wait. */
          code: string
          /** @description The same for people. */
          detail: string
          /** @description How many wait. */
          count: number
          /**
           * Format: date-time
           * @description Since when the first waits.
           * @example 2026-01-31T09:30:00.123456Z
           */
          since: string
        }[]
        /** @description The freezes of the network, and of everything. */
        frozen: {
          /** @description Reason of the freeze. */
          reason: string
          /** @description Why it was placed. */
          detail: string
          /**
           * Format: date-time
           * @description When it was placed.
           * @example 2026-01-31T09:30:00.123456Z
           */
          since: string
        }[]
        uncredited: {
          /** @description Why deposits are not credited. */
          reason: string
          /** @description How many are not. */
          count: number
          /**
           * Format: date-time
           * @description When the first was found.
           * @example 2026-01-31T09:30:00.123456Z
           */
          since: string
        }[]
      }
    }
    FoundRecord: {
      /**
       * @description Type of the record.
       * @enum {string}
       */
      type:
        | 'transfer'
        | 'orchestration'
        | 'orchestration_rule'
        | 'profile'
        | 'account'
        | 'identity'
        | 'statement'
        | 'deposit_address'
        | 'destination_address'
        | 'fiat_account'
        | 'fiat_deposit_instructions'
        | 'approval'
        | 'event'
        | 'webhook'
      /**
       * Format: uuid
       * @description Id of the record.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description Which of its names was searched for.
       * @enum {string}
       */
      found_by: 'ID' | 'REF_ID' | 'GROUP_ID' | 'HASH' | 'ADDRESS' | 'MEMO'
      /** @description Status of the record, where it has one. */
      status?: string
      /**
       * Format: date-time
       * @description When the record was created.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
    }
    Webhook: {
      /**
       * Format: uuid
       * @description Id of the webhook.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * @description Name, unique for the customer.
       * @example Payments
       */
      name: string
      /**
       * @description Where deliveries are sent. HTTPS; in sandbox mode also HTTP.
       * @example https://hooks.example.com/bursar
       */
      url: string
      /**
       * @description Types of events: *, beginnings such as transfer.*, and names.
       * @example [
       *       "transfer.*",
       *       "orchestration.completed"
       *     ]
       */
      event_types: string[]
      /**
       * @description THIN: the event without its object. FULL: a CloudEvent with the object.
       * @enum {string}
       */
      payload: 'THIN' | 'FULL'
      /** @description How deliveries authenticate, besides their signature. Without the secret. */
      auth: {
        /**
         * @description NONE: only the signature. API_KEY: an API key in a header. OAUTH2_CLIENT_CREDENTIALS: a bearer token (RFC 6749, 4.4).
         * @enum {string}
         */
        type: 'NONE' | 'API_KEY' | 'OAUTH2_CLIENT_CREDENTIALS'
        /**
         * @description API_KEY: the name of the header.
         * @example x-api-key
         */
        header?: string
        /** @description OAuth 2: the token endpoint. */
        token_url?: string
        /** @description OAuth 2: the client. */
        client_id?: string
        /** @description OAuth 2: the scope asked for. */
        scope?: string
      }
      /** @description Only events of transfers and orchestrations of these profiles. None: all events. */
      profile_ids?: string[]
      /**
       * @description Most deliveries a second.
       * @example 10
       */
      rate_limit: number
      /**
       * @description DISABLED: nothing is delivered.
       * @enum {string}
       */
      status: 'ACTIVE' | 'DISABLED'
      /** @description Why it is DISABLED, if nobody disabled it by its status. */
      disabled_reason?: string
      /**
       * Format: date-time
       * @description The first failed attempt after the last success.
       * @example 2026-01-31T09:30:00.123456Z
       */
      failing_since?: string
      /**
       * Format: date-time
       * @description After a rotation: until when the previous secret signs, too.
       * @example 2026-01-31T09:30:00.123456Z
       */
      previous_secret_until?: string
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
    }
    Policy: {
      /** @description Number of the version: 1, 2, ...; 0 where there is none. */
      version: number
      rules: {
        /** @description Id of the rule, which refusals name. Its counts go with it from version to version. */
        id: string
        /** @description Why the rule exists. */
        description?: string
        /** @description The payments that the rule fits. An absent member fits all; a rule without any fits every payment. */
        match?: {
          /** @description Ids of the API clients or operators that make the payment. An orchestration counts as made by the client that made it or its rule. */
          client_ids?: string[]
          /** @description Profiles that pay. */
          profile_ids?: string[]
          /** @description Identities that pay: the payment's own, and that of its account and of its profile's account. */
          identity_ids?: string[]
          /** @description Kinds of payment. */
          transfer_types?: (
            | 'CRYPTO_WITHDRAWAL'
            | 'WIRE_WITHDRAWAL'
            | 'INTERNAL_TRANSFER_DEBIT'
            | 'PAXOS_TRANSFER_DEBIT'
          )[]
          /** @description Assets that are paid. */
          assets?: string[]
          /** @description Networks that the payment goes over. Internal transfers go over none. */
          networks?: (
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
            | 'WIRE'
          )[]
          /** @description ANY; ADDRESS_BOOK: an APPROVED address of the address book; or a list of ids of such addresses, of fiat accounts and of profiles. */
          destination?: ('ANY' | 'ADDRESS_BOOK') | string[]
        }
        limit?: {
          /**
           * @description The limit. The total of a payment counts, its fee included.
           * @example 25.5
           */
          amount: string
          /**
           * @description USD: the value in USD of payments of any asset. Another asset: payments of that asset only.
           * @example USD
           */
          asset: string
          /** @description The limit holds for all payments of any period of this length; 0: for each one. */
          period_seconds: number
          /**
           * @description Whose payments are counted together; CUSTOMER by default. PROFILE is no limit of a customer: who makes profiles and moves money between them has it several times.
           * @enum {string}
           */
          per?: 'PROFILE' | 'IDENTITY' | 'CUSTOMER' | 'DESTINATION'
        }
        /**
         * @description With a limit, ALLOW decides while the payment stays within it, BLOCK and APPROVE when it goes beyond it.
         * @enum {string}
         */
        action: 'ALLOW' | 'BLOCK' | 'APPROVE'
        /** @description How many different approvers must say yes. */
        approvals?: number
        /** @description Role of the approvers who decide; APPROVER by default. */
        role?: string
      }[]
      /** @description Terms of approvals. */
      approvals?: {
        /** @description How long approvers have to decide; a day by default. */
        deadline_seconds: number
      }
      /** @description Terms of the address book. */
      address_book?: {
        /** @description How long a new address waits before it can be paid by its id. */
        cooling_seconds: number
      }
      /** @description Changes that need approval. */
      changes?: {
        subjects: ('POLICY' | 'APPROVERS' | 'WEBHOOKS' | 'CREDENTIALS' | 'OPERATORS' | 'ADDRESS_BOOK')[]
        /** @description How many different approvers must say yes. */
        approvals: number
        /** @description Role of the approvers who decide; APPROVER by default. */
        role?: string
      }
      /**
       * Format: date-time
       * @description When it was made.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at?: string
    }
    ApiCredentials: {
      /**
       * Format: uuid
       * @description The same as client_id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      id: string
      /**
       * Format: uuid
       * @description The id of the API client.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      client_id: string
      /**
       * Format: uuid
       * @description Customer id.
       * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
       */
      customer_id: string
      /** @description The scopes that its tokens may have. */
      client_scopes: string[]
      /** @description The same as client_scopes. */
      client_scope_strings: string[]
      /**
       * @description DELETED: its tokens are refused.
       * @enum {string}
       */
      status: 'APPROVED' | 'DELETED'
      /**
       * Format: date-time
       * @description Creation time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      created_at: string
      /**
       * Format: date-time
       * @description Last update time.
       * @example 2026-01-31T09:30:00.123456Z
       */
      updated_at: string
      /**
       * Format: date-time
       * @description After a rotation: until when the previous secret is accepted.
       * @example 2026-01-31T09:30:00.123456Z
       */
      previous_secret_expires_at?: string
    }
    ThinEvent: {
      /**
       * Format: uuid
       * @description Event id.
       */
      id: string
      /** @description Type of the event. Ignore a type that you do not know. */
      type: string
      /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
      source: string
      /**
       * Format: date-time
       * @description When the status changed.
       */
      time: string
      /**
       * @description Always event.
       * @enum {string}
       */
      object: 'event'
      /** @description Whether it is a test: the records that it names do not exist. */
      is_test: boolean
    }
  }
  responses: never
  parameters: never
  requestBodies: never
  headers: never
  pathItems: never
}
export type $defs = Record<string, never>
export interface operations {
  createCryptoWithdrawal: {
    parameters: {
      query?: {
        /** @description True: answers what the same request would be answered now, and changes nothing. The id belongs to no record. */
        dry_run?: boolean
      }
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description Profile to withdraw from.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
          /**
           * @description Destination address.
           * @example 0x52908400098527886E0F7030069857D2E4169EE7
           */
          destination_address: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          asset: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          crypto_network:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * Format: uuid
           * @description Identity of the user making the withdrawal.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account of the identity making the withdrawal.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /**
           * @description Balance to debit: USD (one to one) for a platform-issued stablecoin; otherwise the asset itself.
           * @example USD
           */
          balance_asset?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
          /**
           * Format: uuid
           * @description Id of a guaranteed fee, from POST /v2/transfer/fees/crypto-withdrawal.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          fee_id?: string
          /**
           * @description Amount to withdraw. Exactly one of amount and total.
           * @example 25.5
           */
          amount?: string
          /**
           * @description Total to withdraw, fee included. Exactly one of amount and total.
           * @example 25.5
           */
          total?: string
          /** @description Beneficiary information. Other members are kept as they are, 8 KiB at most in all. */
          beneficiary?: {
            person_details?: {
              /** @description Name. */
              first_name: string
              /** @description Name. */
              last_name: string
            }
            institution_details?: {
              /** @description Name. */
              name: string
            }
          } & {
            [key: string]: unknown
          }
          /** @description Memo sent with the withdrawal. */
          memo?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Transfer']
        }
      }
    }
  }
  getTransfer: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Transfer id.
         * @example 0192f3a4-0000-7000-8000-000000000009
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Transfer']
        }
      }
    }
  }
  getTransferHistory: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Transfer id.
         * @example 0192f3a4-0000-7000-8000-000000000009
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            transfer: components['schemas']['Transfer']
            /** @description The entries of the ledger, in their order. */
            entries: components['schemas']['LedgerEntry'][]
            /** @description The transactions that were signed for a crypto withdrawal, oldest first. */
            transactions: components['schemas']['NetworkTransaction'][]
            fees?: components['schemas']['TransferFees']
            /** @description Why the payment waits now. Only operators see it. */
            waiting?: {
              /** @description Why the payment waits. */
              code: string
              /** @description The same for people. */
              detail: string
              /**
               * Format: date-time
               * @description Since when.
               * @example 2026-01-31T09:30:00.123456Z
               */
              since?: string
            }
            /** @description Its records of the audit log. With `audit:read_audit_log`. */
            changes?: components['schemas']['AuditLogRecord'][]
            approval?: components['schemas']['Approval']
            /** @description With `orchestration:read_orchestration`. */
            orchestrations?: components['schemas']['OrchestrationOfTransfer'][]
            /** @description With `events:read_event`. */
            events?: components['schemas']['Event'][]
            /** @description The deliveries of `events`. With `webhooks:read_webhook`, too. */
            deliveries?: components['schemas']['DeliveryWithAttempts'][]
          }
        }
      }
    }
  }
  verifyTransfer: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Transfer id.
         * @example 0192f3a4-0000-7000-8000-000000000009
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /** @description Whether every check holds. */
            holds: boolean
            checks: {
              /**
               * @description The check.
               * @enum {string}
               */
              check: 'SUMS_TO_ZERO' | 'BALANCES_FOLLOW' | 'POSTINGS_OF_STATUS' | 'AUDIT_CHAIN'
              /** @description Whether it holds. */
              holds: boolean
              /** @description What was compared, or what differs. */
              detail: string
            }[]
          }
        }
      }
    }
  }
  listTransferVolumes: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /**
             * Format: date-time
             * @description The beginning of the 24 hours.
             * @example 2026-01-31T09:30:00.123456Z
             */
            since: string
            items: components['schemas']['TransferVolume'][]
          }
        }
      }
    }
  }
  listTransfers: {
    parameters: {
      query?: {
        /** @description Filter by transfer ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /**
         * @description Filter by profiles. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "0192f3a4-0000-7000-8000-000000000002"
         *     ]
         */
        profile_ids?: string[]
        /** @description Filter by identities. At most 100 values; repeat the parameter or separate with commas. */
        identity_ids?: string[]
        /** @description Filter by accounts. At most 100 values; repeat the parameter or separate with commas. */
        account_ids?: string[]
        /** @description Filter by ref_ids. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /** @description Filter by groups. At most 100 values; repeat the parameter or separate with commas. */
        group_ids?: string[]
        /** @description Filter by on-chain transaction hashes. At most 100 values; repeat the parameter or separate with commas. */
        crypto_tx_hashes?: string[]
        /** @description Filter by types. At most 100 values; repeat the parameter or separate with commas. */
        type?: (
          | 'INTERNAL_TRANSFER_DEBIT'
          | 'INTERNAL_TRANSFER_CREDIT'
          | 'CRYPTO_DEPOSIT'
          | 'CRYPTO_WITHDRAWAL'
          | 'WIRE_DEPOSIT'
          | 'WIRE_WITHDRAWAL'
          | 'SEN_DEPOSIT'
          | 'SEN_WITHDRAWAL'
          | 'BANK_DEPOSIT'
          | 'BANK_WITHDRAWAL'
          | 'PAXOS_TRANSFER_DEBIT'
          | 'PAXOS_TRANSFER_CREDIT'
          | 'SIGNET_DEPOSIT'
          | 'SIGNET_WITHDRAWAL'
          | 'CBIT_WITHDRAWAL'
          | 'CBIT_DEPOSIT'
          | 'CUBIX_DEPOSIT'
          | 'CUBIX_WITHDRAWAL'
          | 'RTP_DEPOSIT'
        )[]
        /**
         * @description Filter by statuses. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "COMPLETED"
         *     ]
         */
        statuses?: ('PENDING' | 'COMPLETED' | 'FAILED')[]
        /** @description Filter by secondary statuses. At most 100 values; repeat the parameter or separate with commas. */
        secondary_statuses?: (
          | 'TRAVEL_RULE_INFO_REQUESTED'
          | 'TRAVEL_RULE_REJECTED'
          | 'CUSTOMER_REJECTED'
          | 'PENDING_CUSTOMER_APPROVAL'
        )[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description updated_at strictly before. */
        'updated_at.lt'?: string
        /** @description updated_at before or equal. */
        'updated_at.lte'?: string
        /** @description updated_at exactly equal. */
        'updated_at.eq'?: string
        /** @description updated_at after or equal. */
        'updated_at.gte'?: string
        /** @description updated_at strictly after. */
        'updated_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT' | 'UPDATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Transfer'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  cancelTransfer: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of a withdrawal.
         * @example 0192f3a4-0000-7000-8000-000000000009
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Transfer']
        }
      }
    }
  }
  createInternalTransfer: {
    parameters: {
      query?: {
        /** @description True: answers what the same request would be answered now, and changes nothing. The id belongs to no record. */
        dry_run?: boolean
      }
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          asset: string
          /**
           * @description Amount to move.
           * @example 25.5
           */
          amount: string
          /**
           * Format: uuid
           * @description Profile to debit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          from_profile_id: string
          /**
           * Format: uuid
           * @description Profile to credit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          to_profile_id: string
          /**
           * Format: uuid
           * @description Identity of the sender, recorded with the debit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          from_identity_id?: string
          /**
           * Format: uuid
           * @description Account of the sender, recorded with the debit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          from_account_id?: string
          /**
           * Format: uuid
           * @description Identity of the receiver, recorded with the credit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          to_identity_id?: string
          /**
           * Format: uuid
           * @description Account of the receiver, recorded with the credit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          to_account_id?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          recipient_metadata?: {
            [key: string]: string
          }
          /** @description Memo recorded with both legs. */
          memo?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Transfer']
        }
      }
    }
  }
  createPaxosTransfer: {
    parameters: {
      query?: {
        /** @description True: answers what the same request would be answered now, and changes nothing. The id belongs to no record. */
        dry_run?: boolean
      }
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          asset: string
          /**
           * @description Amount to move.
           * @example 25.5
           */
          amount: string
          /**
           * Format: uuid
           * @description Profile to debit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          from_profile_id: string
          /**
           * Format: uuid
           * @description Profile of another customer to credit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          to_profile_id: string
          /**
           * Format: uuid
           * @description Identity of the sender, recorded with the debit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account of the sender, recorded with the debit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          recipient_metadata?: {
            [key: string]: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Transfer']
        }
      }
    }
  }
  createFiatWithdrawal: {
    parameters: {
      query?: {
        /** @description True: answers what the same request would be answered now, and changes nothing. The id belongs to no record. */
        dry_run?: boolean
      }
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description Profile to withdraw from.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          asset: string
          /**
           * Format: uuid
           * @description Fiat account to pay, from POST /v2/transfer/fiat-accounts.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          fiat_account_id: string
          /**
           * @description Amount to withdraw. Exactly one of amount and total.
           * @example 25.5
           */
          amount?: string
          /**
           * @description Total to withdraw, fee included. Exactly one of amount and total.
           * @example 25.5
           */
          total?: string
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * Format: uuid
           * @description Identity of the user making the withdrawal.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account of the identity making the withdrawal.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /** @description Memo sent with the wire. */
          memo?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Transfer']
        }
      }
    }
  }
  createCryptoWithdrawalFee: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          asset: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          crypto_network:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
          /**
           * @description Destination address.
           * @example 0x52908400098527886E0F7030069857D2E4169EE7
           */
          destination_address: string
          /**
           * @description Largest amount the quote is for. Exactly one of amount and total.
           * @example 25.5
           */
          amount?: string
          /**
           * @description Largest total the quote is for, fee included. Exactly one of amount and total.
           * @example 25.5
           */
          total?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /**
             * Format: uuid
             * @description The fee_id for the withdrawal.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            id: string
            /**
             * @description The guaranteed fee.
             * @example 25.5
             */
            fee: string
            /**
             * Format: date-time
             * @description End of the guarantee.
             * @example 2026-01-31T09:30:00.123456Z
             */
            expires_at: string
            /**
             * @description Asset, by its ticker.
             * @example USDP
             */
            asset: string
            /**
             * @description Blockchain network.
             * @example ETHEREUM
             * @enum {string}
             */
            crypto_network:
              | 'BITCOIN'
              | 'ETHEREUM'
              | 'BITCOIN_CASH'
              | 'LITECOIN'
              | 'SOLANA'
              | 'POLYGON_POS'
              | 'BASE'
              | 'ARBITRUM_ONE'
              | 'STELLAR'
              | 'INK'
              | 'XLAYER'
            /**
             * @description Destination address.
             * @example 0x52908400098527886E0F7030069857D2E4169EE7
             */
            destination_address: string
            /**
             * @description Largest amount the quote is for. Exactly one of amount and total.
             * @example 25.5
             */
            amount?: string
            /**
             * @description Largest total the quote is for, fee included. Exactly one of amount and total.
             * @example 25.5
             */
            total?: string
          }
        }
      }
    }
  }
  createCryptoWithdrawals: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /** @description The withdrawals, each as Create Crypto Withdrawal takes it, with a ref_id of its own. */
          withdrawals: {
            /**
             * Format: uuid
             * @description Profile to withdraw from.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            profile_id: string
            /**
             * @description Destination address.
             * @example 0x52908400098527886E0F7030069857D2E4169EE7
             */
            destination_address: string
            /**
             * @description Asset, by its ticker.
             * @example USDP
             */
            asset: string
            /**
             * @description Blockchain network.
             * @example ETHEREUM
             * @enum {string}
             */
            crypto_network:
              | 'BITCOIN'
              | 'ETHEREUM'
              | 'BITCOIN_CASH'
              | 'LITECOIN'
              | 'SOLANA'
              | 'POLYGON_POS'
              | 'BASE'
              | 'ARBITRUM_ONE'
              | 'STELLAR'
              | 'INK'
              | 'XLAYER'
            /**
             * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
             * @example payout-2026-0001
             */
            ref_id: string
            /**
             * Format: uuid
             * @description Identity of the user making the withdrawal.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            identity_id?: string
            /**
             * Format: uuid
             * @description Account of the identity making the withdrawal.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            account_id?: string
            /**
             * @description Balance to debit: USD (one to one) for a platform-issued stablecoin; otherwise the asset itself.
             * @example USD
             */
            balance_asset?: string
            /**
             * @description Up to 6 pairs of strings; each key and value at most 100 characters.
             * @example {
             *       "order": "1041"
             *     }
             */
            metadata?: {
              [key: string]: string
            }
            /**
             * Format: uuid
             * @description Id of a guaranteed fee, from POST /v2/transfer/fees/crypto-withdrawal.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            fee_id?: string
            /**
             * @description Amount to withdraw. Exactly one of amount and total.
             * @example 25.5
             */
            amount?: string
            /**
             * @description Total to withdraw, fee included. Exactly one of amount and total.
             * @example 25.5
             */
            total?: string
            /** @description Beneficiary information. Other members are kept as they are, 8 KiB at most in all. */
            beneficiary?: {
              person_details?: {
                /** @description Name. */
                first_name: string
                /** @description Name. */
                last_name: string
              }
              institution_details?: {
                /** @description Name. */
                name: string
              }
            } & {
              [key: string]: unknown
            }
            /** @description Memo sent with the withdrawal. */
            memo?: string
          }[]
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /** @description The answers, in the order of the withdrawals: the transfer, or the problem that a request of this withdrawal alone would get. Exactly one of the two. */
            items: {
              transfer?: components['schemas']['Transfer']
              problem?: components['schemas']['Problem']
            }[]
          }
        }
      }
    }
  }
  listOrchestrations: {
    parameters: {
      query?: {
        /**
         * @description Filter by initiating rule ids. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "0192f3a4-0000-7000-8000-000000000007"
         *     ]
         */
        orchestration_rule_id?: string[]
        /** @description Filter by source assets. At most 100 values; repeat the parameter or separate with commas. */
        source_asset?: string[]
        /** @description Filter by destination assets. At most 100 values; repeat the parameter or separate with commas. */
        destination_asset?: string[]
        /** @description Filter by statuses. No orchestration is PENDING or REJECTED. At most 100 values; repeat the parameter or separate with commas. */
        status?: ('PROCESSING' | 'COMPLETED' | 'FAILED' | 'PENDING' | 'REJECTED')[]
        /** @description Filter by ref_ids. At most 100 values; repeat the parameter. */
        ref_id?: string[]
        /** @description Filter by orchestration ids. At most 100 values; repeat the parameter or separate with commas. */
        orchestration_id?: string[]
        /** @description Filter by target profiles. At most 100 values; repeat the parameter or separate with commas. */
        profile_id?: string[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Orchestration'][]
            /**
             * @deprecated
             * @description Deprecated: the same records as `items`, which replaces it.
             */
            orchestrations: components['schemas']['Orchestration'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createOrchestration: {
    parameters: {
      query?: {
        /** @description True: answers what the same request would be answered now, and changes nothing. The id belongs to no record. */
        dry_run?: boolean
      }
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          source_asset: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          destination_asset: string
          /**
           * @description Amount of the source asset to take.
           * @example 25.5
           */
          source_amount: string
          /** @description Where the money comes from. */
          source: {
            profile: {
              /**
               * Format: uuid
               * @description Profile to debit.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              profile_id: string
            }
          }
          /** @description Where the money goes: crypto, fiat or profile. Without it, it stays on the profile, converted. */
          destination?: {
            /** @description A crypto address: address and network, or address_id. */
            crypto?: {
              /**
               * @description Destination address.
               * @example 0x52908400098527886E0F7030069857D2E4169EE7
               */
              address?: string
              /**
               * @description Blockchain network.
               * @example ETHEREUM
               * @enum {string}
               */
              network?:
                | 'BITCOIN'
                | 'ETHEREUM'
                | 'BITCOIN_CASH'
                | 'LITECOIN'
                | 'SOLANA'
                | 'POLYGON_POS'
                | 'BASE'
                | 'ARBITRUM_ONE'
                | 'STELLAR'
                | 'INK'
                | 'XLAYER'
              /**
               * Format: uuid
               * @description The id of an address of the address book, instead of address and network.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              address_id?: string
              /**
               * Format: uuid
               * @description Another name of address_id.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              crypto_address_id?: string
            }
            /** @description A bank account. Needs fiat_account_id. */
            fiat?: {
              /**
               * Format: uuid
               * @description Fiat account to pay.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              fiat_account_id?: string
              /**
               * Format: uuid
               * @description Another name of fiat_account_id.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              bank_account_id?: string
              /** @description Memo that goes with the money. */
              memo?: string
            }
            /** @description A balance of a profile. */
            profile?: {
              /**
               * Format: uuid
               * @description Profile.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              profile_id: string
            }
          }
          /**
           * Format: uuid
           * @description The same as source.profile.profile_id.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id?: string
          /**
           * Format: uuid
           * @description Identity.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Orchestration']
        }
      }
    }
  }
  listOrchestrationRules: {
    parameters: {
      query?: {
        /** @description Filter by rule ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /** @description Filter by ref_ids. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /** @description Filter by profiles. At most 100 values; repeat the parameter or separate with commas. */
        profile_ids?: string[]
        /**
         * @description Filter by statuses. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "ACTIVE"
         *     ]
         */
        statuses?: ('ACTIVE' | 'DELETED' | 'PENDING' | 'REJECTED')[]
        /** @description Filter by profiles, as profile_ids does. At most 100 values; repeat the parameter or separate with commas. */
        profile_id?: string[]
        /** @description Filter by statuses, as statuses does. At most 100 values; repeat the parameter or separate with commas. */
        status?: ('ACTIVE' | 'DELETED' | 'PENDING' | 'REJECTED')[]
        /** @description Filter by source assets. At most 100 values; repeat the parameter or separate with commas. */
        source_asset?: string[]
        /** @description Filter by destination assets. At most 100 values; repeat the parameter or separate with commas. */
        destination_asset?: string[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['OrchestrationRule'][]
            /**
             * @deprecated
             * @description Deprecated: the same records as `items`, which replaces it.
             */
            rules: components['schemas']['OrchestrationRule'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createOrchestrationRule: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id: string
          /**
           * Format: uuid
           * @description Profile that the deposits are credited to.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          source_asset: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          destination_asset: string
          /** @description What triggers the rule: a deposit to the rule's own address (crypto) or with its own memo (fiat), or any deposit to the profile. */
          source: {
            crypto?: {
              /**
               * @description Blockchain network.
               * @example ETHEREUM
               * @enum {string}
               */
              network:
                | 'BITCOIN'
                | 'ETHEREUM'
                | 'BITCOIN_CASH'
                | 'LITECOIN'
                | 'SOLANA'
                | 'POLYGON_POS'
                | 'BASE'
                | 'ARBITRUM_ONE'
                | 'STELLAR'
                | 'INK'
                | 'XLAYER'
            }
            fiat?: {
              /**
               * @description Fiat network.
               * @enum {string}
               */
              network?: 'WIRE'
              /**
               * @description Kind of bank account.
               * @enum {string}
               */
              account_type?: 'CHECKING' | 'SAVINGS'
            }
            /** @description A balance of a profile. */
            profile?: {
              /**
               * Format: uuid
               * @description Profile.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              profile_id: string
            }
          }
          /** @description Where the money goes: crypto, fiat or profile. Without it, it stays on the profile, converted. */
          destination?: {
            /** @description A crypto address: address and network, or address_id. */
            crypto?: {
              /**
               * @description Destination address.
               * @example 0x52908400098527886E0F7030069857D2E4169EE7
               */
              address?: string
              /**
               * @description Blockchain network.
               * @example ETHEREUM
               * @enum {string}
               */
              network?:
                | 'BITCOIN'
                | 'ETHEREUM'
                | 'BITCOIN_CASH'
                | 'LITECOIN'
                | 'SOLANA'
                | 'POLYGON_POS'
                | 'BASE'
                | 'ARBITRUM_ONE'
                | 'STELLAR'
                | 'INK'
                | 'XLAYER'
              /**
               * Format: uuid
               * @description The id of an address of the address book, instead of address and network.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              address_id?: string
              /**
               * Format: uuid
               * @description Another name of address_id.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              crypto_address_id?: string
            }
            /** @description A bank account. Needs fiat_account_id. */
            fiat?: {
              /**
               * Format: uuid
               * @description Fiat account to pay.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              fiat_account_id?: string
              /**
               * Format: uuid
               * @description Another name of fiat_account_id.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              bank_account_id?: string
              /** @description Memo that goes with the money. */
              memo?: string
            }
            /** @description A balance of a profile. */
            profile?: {
              /**
               * Format: uuid
               * @description Profile.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              profile_id: string
            }
          }
          /** @description Display name. */
          nickname?: string
          /**
           * Format: uuid
           * @description Identity of its orchestrations and their transfers.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account of its orchestrations and their transfers.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            rule: components['schemas']['OrchestrationRule']
          }
        }
      }
    }
  }
  deleteOrchestrationRule: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Rule id.
         * @example 0192f3a4-0000-7000-8000-000000000007
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            rule: components['schemas']['OrchestrationRule']
          }
        }
      }
    }
  }
  getOrchestration: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Orchestration id.
         * @example 0192f3a4-0000-7000-8000-000000000008
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Orchestration']
        }
      }
    }
  }
  listStatements: {
    parameters: {
      query: {
        /**
         * @description Customer id; must be the token's customer.
         * @example 0192f3a4-0000-7000-8000-000000000001
         */
        customer_id: string
        /** @description Filter by statement ref_ids. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /** @description Filter by statement ids. At most 100 values; repeat the parameter or separate with commas. */
        statement_ids?: string[]
        /** @description Filter by status; all statuses by default. At most 100 values; repeat the parameter or separate with commas. */
        statuses?: (
          | 'STATEMENT_STATUS_UNSPECIFIED'
          | 'STATEMENT_STATUS_INITIATED'
          | 'STATEMENT_STATUS_GENERATED'
          | 'STATEMENT_STATUS_PAID'
        )[]
        /**
         * @description Page size.
         * @example 12
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            statements: components['schemas']['Statement'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  listPayments: {
    parameters: {
      query?: {
        /** @description Filter by payment ref_ids. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /** @description Filter by payment ids. At most 100 values; repeat the parameter or separate with commas. */
        payment_ids?: string[]
        /** @description Customer id; must be the token's customer. */
        customer_id?: string
        /** @description Filter by product. */
        product?: 'USDG_REWARDS'
        /** @description Filter by status. */
        payment_status?: 'PAYMENT_STATUS_PENDING' | 'PAYMENT_STATUS_COMPLETED' | 'PAYMENT_STATUS_FAILED'
        /**
         * @description Page size.
         * @example 12
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            payments: components['schemas']['StatementPayment'][]
            /** @description The same payments as `payments`. */
            items: components['schemas']['StatementPayment'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  listRewardsStatements: {
    parameters: {
      query?: {
        /**
         * @description Filter by the rewarded asset.
         * @example USDG
         */
        asset_type?: string
        /** @description Filter by statement type. */
        type?: 'STATEMENT_TYPE_MONTHLY_REWARDS'
        /**
         * @description Page size.
         * @example 12
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['RewardsStatement'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  getRewardsStatement: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Statement id.
         * @example 0192f3a4-0000-7000-8000-00000000000c
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            statement: components['schemas']['RewardsStatement']
          }
        }
      }
    }
  }
  explainStatement: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Statement id.
         * @example 0192f3a4-0000-7000-8000-00000000000c
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /**
             * Format: uuid
             * @description Statement.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            statement_id: string
            /** @description Whether the result equals the amount of the statement. */
            holds: boolean
            /**
             * @description Asset, by its ticker.
             * @example USDP
             */
            asset: string
            /**
             * @description The amount of the statement.
             * @example 25.5
             */
            stated: string
            /**
             * @description The amount computed again: the sum of the products by 86,400 and 365, rounded down.
             * @example 25.5
             */
            computed: string
            /**
             * @description Which balance of a day earns: its average.
             * @enum {string}
             */
            method: 'TIME_WEIGHTED'
            /**
             * @description The sum of balance x seconds x rate over all days, exactly.
             * @example 12.345678901234
             */
            products: string
            days: {
              /**
               * @description Day, UTC.
               * @example 2026-01-31
               */
              day: string
              /**
               * @description The balance that earns, cut after 12 decimals.
               * @example 12.345678901234
               */
              balance: string
              /**
               * @description The annual rate of the day.
               * @example 0.0376
               */
              rate: string
              /**
               * @description The balance times the rate by 365, cut after 12 decimals.
               * @example 12.345678901234
               */
              reward: string
            }[]
          }
        }
      }
    }
  }
  listRewardsRates: {
    parameters: {
      query?: {
        /**
         * @description Filter by the rewarded asset.
         * @example USDG
         */
        asset_type?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            rates: components['schemas']['RewardRate'][]
            /** @description The same rates as `rates`. */
            items: components['schemas']['RewardRate'][]
          }
        }
      }
    }
  }
  initiateSandboxFiatDeposit: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Amount to deposit, with at most two decimals.
           * @example 250.00
           */
          amount: string
          /**
           * @description Only USD is supported.
           * @enum {string}
           */
          asset: 'USD'
          /** @description The memo_id of deposit instructions, which determines the profile to credit. */
          memo_id: string
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          fiat_network_instructions: {
            wire: {
              /** @description Text. */
              account_number?: string
              /**
               * @description Kind of bank account.
               * @enum {string}
               */
              account_type?: 'CHECKING' | 'SAVINGS'
              fiat_account_owner_address?: {
                /** @description Text. */
                country?: string
                /** @description Text. */
                address1?: string
                /** @description Text. */
                address2?: string
                /** @description Text. */
                city?: string
                /** @description Text. */
                province?: string
                /** @description Text. */
                zip_code?: string
              } & {
                [key: string]: unknown
              }
              routing_details?: {
                /**
                 * @description Kind of routing number.
                 * @enum {string}
                 */
                routing_number_type?: 'ABA' | 'SWIFT'
                /** @description Text. */
                routing_number?: string
                /** @description Text. */
                bank_name?: string
                bank_address?: {
                  /** @description Text. */
                  country?: string
                  /** @description Text. */
                  address1?: string
                  /** @description Text. */
                  address2?: string
                  /** @description Text. */
                  city?: string
                  /** @description Text. */
                  province?: string
                  /** @description Text. */
                  zip_code?: string
                } & {
                  [key: string]: unknown
                }
              } & {
                [key: string]: unknown
              }
            } & {
              [key: string]: unknown
            }
          }
          fiat_account_owner?: {
            institution_details?: {
              /** @description Name. */
              name?: string
            }
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': Record<string, never>
        }
      }
    }
  }
  depositToSandboxProfile: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path: {
        /**
         * @description Profile to credit.
         * @example 0192f3a4-0000-7000-8000-000000000002
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          asset: string
          /**
           * @description Amount to deposit.
           * @example 25.5
           */
          amount: string
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          crypto_network?:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
          /** @description The deposit address of the profile that receives the deposit. Needs crypto_network. */
          crypto_address?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /**
             * Format: uuid
             * @description Id of the transfer.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            activity_id: string
          }
        }
      }
    }
  }
  getAccount: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Account id.
         * @example 0192f3a4-0000-7000-8000-000000000004
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Account']
        }
      }
    }
  }
  listAccounts: {
    parameters: {
      query?: {
        /** @description Filter by account ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /** @description Filter by ref_ids, of every API client. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /**
         * @description Filter by primary identities. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "0192f3a4-0000-7000-8000-000000000003"
         *     ]
         */
        identity_ids?: string[]
        /** @description Another name for identity_ids. At most 100 values; repeat the parameter or separate with commas. */
        identity_id?: string[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description updated_at strictly before. */
        'updated_at.lt'?: string
        /** @description updated_at before or equal. */
        'updated_at.lte'?: string
        /** @description updated_at exactly equal. */
        'updated_at.eq'?: string
        /** @description updated_at after or equal. */
        'updated_at.gte'?: string
        /** @description updated_at strictly after. */
        'updated_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Account'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  updateAccount: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /** @description The account. */
          account: {
            /**
             * Format: uuid
             * @description Account id used in all other interactions.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            id: string
            /** @description Free-text description. */
            description?: string
            /**
             * @description Up to 6 pairs of strings; each key and value at most 100 characters.
             * @example {
             *       "order": "1041"
             *     }
             */
            metadata?: {
              [key: string]: string
            }
            /**
             * Format: uuid
             * @description Primary identity of the account.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            identity_id?: string
            /** @description True if disabled by a platform administrator. */
            admin_disabled?: boolean
            /** @description True if disabled by the API user. */
            user_disabled?: boolean
            /**
             * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
             * @example payout-2026-0001
             */
            ref_id?: string
            /**
             * Format: date-time
             * @description Creation time.
             * @example 2026-01-31T09:30:00.123456Z
             */
            created_at?: string
            /**
             * Format: date-time
             * @description Last update time, of the account or of its primary identity.
             * @example 2026-01-31T09:30:00.123456Z
             */
            updated_at?: string
            /**
             * @description DISABLED by either flag, else the summary_status of the primary identity.
             * @enum {string}
             */
            summary_status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
            /**
             * Format: uuid
             * @description Profile created with the account. Absent if none was requested.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            profile_id?: string
            /**
             * @description Account type.
             * @default BROKERAGE
             * @enum {string}
             */
            type?: 'BROKERAGE' | 'TRADITIONAL_IRA' | 'ROTH_IRA' | 'SEP_IRA' | 'FINANCIAL_ADVISOR'
            /** @description As they are stored. */
            members?: {
              /**
               * Format: uuid
               * @description Member id.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              id?: string
              /**
               * Format: uuid
               * @description Identity that has access to the account.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              identity_id?: string
              /**
               * @description The first of the roles. Absent without roles.
               * @enum {string}
               */
              type?: 'BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR'
              /**
               * @description Role of the identity in the account.
               * @default []
               */
              roles?: ('BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR')[]
            }[]
          }
          /** @description Sets user_disabled. */
          set_user_disabled?: boolean
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Account']
        }
      }
    }
  }
  createAccount: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /** @description The account. */
          account: {
            /**
             * Format: uuid
             * @description Primary identity of the account.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            identity_id: string
            /**
             * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
             * @example payout-2026-0001
             */
            ref_id?: string
            /**
             * @description Account type.
             * @default BROKERAGE
             * @enum {string}
             */
            type?: 'BROKERAGE' | 'TRADITIONAL_IRA' | 'ROTH_IRA' | 'SEP_IRA' | 'FINANCIAL_ADVISOR'
            /** @description Free-text description. */
            description?: string
            /**
             * @description Up to 6 pairs of strings; each key and value at most 100 characters.
             * @example {
             *       "order": "1041"
             *     }
             */
            metadata?: {
              [key: string]: string
            }
            /** @description Additional identities with access to the account. */
            members?: {
              /**
               * Format: uuid
               * @description Identity that has access to the account.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              identity_id: string
              /**
               * @description The first of the roles; without roles, the only one.
               * @enum {string}
               */
              type?: 'BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR'
              /**
               * @description Role of the identity in the account.
               * @default []
               */
              roles?: ('BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR')[]
            }[]
          }
          /**
           * @description Also create a NORMAL profile for the account.
           * @default false
           */
          create_profile?: boolean
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Account']
        }
      }
    }
  }
  addAccountMembers: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description Account.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id: string
          /** @description Additional identities with access to the account. */
          members: {
            /**
             * Format: uuid
             * @description Identity that has access to the account.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            identity_id: string
            /**
             * @description The first of the roles; without roles, the only one.
             * @enum {string}
             */
            type?: 'BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR'
            /**
             * @description Role of the identity in the account.
             * @default []
             */
            roles?: ('BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR')[]
          }[]
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /**
             * Format: uuid
             * @description Account.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            account_id: string
            /** @description The members that were added. */
            members: {
              /**
               * Format: uuid
               * @description Member id.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              id: string
              /**
               * Format: uuid
               * @description Identity that has access to the account.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              identity_id: string
              /**
               * @description The first of the roles. Absent without roles.
               * @enum {string}
               */
              type?: 'BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR'
              /**
               * @description Role of the identity in the account.
               * @default []
               */
              roles: ('BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR')[]
            }[]
          }
        }
      }
    }
  }
  removeAccountMember: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Member id.
         * @example 0192f3a4-0000-7000-8000-0000000000d3
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': Record<string, never>
        }
      }
    }
  }
  listHistoricalPrices: {
    parameters: {
      query?: {
        /**
         * @description Upper bound on the number of points (int64, 1 or more): selects the finest increment with at most this many points in the range. Not together with `increment`.
         * @example 48
         */
        max_data_points?: string | number
        /** @description Only points that begin then or later; strictly later when `increment` is given. */
        'range.begin'?: string
        /** @description Only points that begin then or earlier; strictly earlier when `increment` is given. */
        'range.end'?: string
        /** @description Number of points to return. */
        'pagination.limit'?: number
        /** @description Number of points to skip. */
        'pagination.offset'?: number
        /** @description Time step between points. Not together with `max_data_points`. */
        increment?:
          | 'ONE_MINUTE'
          | 'FIVE_MINUTES'
          | 'FIFTEEN_MINUTES'
          | 'THIRTY_MINUTES'
          | 'ONE_HOUR'
          | 'TWO_HOURS'
          | 'TWELVE_HOURS'
          | 'ONE_DAY'
          | 'ONE_WEEK'
          | 'TWO_WEEKS'
          | 'FOUR_WEEKS'
      }
      header?: never
      path: {
        /**
         * @description Market, by its code.
         * @example BTCUSD
         */
        market:
          | 'ETHEUR'
          | 'ETHUSD'
          | 'BTCEUR'
          | 'BTCUSD'
          | 'PAXGUSD'
          | 'BCHUSD'
          | 'LTCUSD'
          | 'ETHGBP'
          | 'BTCGBP'
          | 'LTCGBP'
          | 'BCHGBP'
          | 'USDPUSD'
          | 'ETHBRL'
          | 'BTCBRL'
          | 'LTCBRL'
          | 'BCHBRL'
          | 'USDPGBP'
          | 'USDPBRL'
          | 'LINKUSD'
          | 'MATICUSD'
          | 'AAVEUSD'
          | 'UNIUSD'
          | 'AAVEMXN'
          | 'BCHMXN'
          | 'BTCMXN'
          | 'ETHMXN'
          | 'LTCMXN'
          | 'USDPMXN'
          | 'AAVEEUR'
          | 'BCHEUR'
          | 'LTCEUR'
          | 'LINKEUR'
          | 'MATICEUR'
          | 'PAXGEUR'
          | 'SOLEUR'
          | 'USDPEUR'
          | 'UNIEUR'
          | 'PYUSDEUR'
          | 'PYUSDGBP'
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            market: string
            prices: components['schemas']['HistoricalPrice'][]
            /** @description The same points as `prices`. */
            items: components['schemas']['HistoricalPrice'][]
            /** @description Number of points in the range, on all pages. */
            total_count: number
          }
        }
      }
    }
  }
  listMarkets: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            markets: components['schemas']['Market'][]
          }
        }
      }
    }
  }
  listPrices: {
    parameters: {
      query?: {
        /**
         * @description Only these markets; all by default. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "BTCUSD",
         *       "ETHUSD"
         *     ]
         */
        markets?: (
          | 'ETHEUR'
          | 'ETHUSD'
          | 'BTCEUR'
          | 'BTCUSD'
          | 'PAXGUSD'
          | 'BCHUSD'
          | 'LTCUSD'
          | 'ETHGBP'
          | 'BTCGBP'
          | 'LTCGBP'
          | 'BCHGBP'
          | 'USDPUSD'
          | 'ETHBRL'
          | 'BTCBRL'
          | 'LTCBRL'
          | 'BCHBRL'
          | 'USDPGBP'
          | 'USDPBRL'
          | 'LINKUSD'
          | 'MATICUSD'
          | 'AAVEUSD'
          | 'UNIUSD'
          | 'AAVEMXN'
          | 'BCHMXN'
          | 'BTCMXN'
          | 'ETHMXN'
          | 'LTCMXN'
          | 'USDPMXN'
          | 'AAVEEUR'
          | 'BCHEUR'
          | 'LTCEUR'
          | 'LINKEUR'
          | 'MATICEUR'
          | 'PAXGEUR'
          | 'SOLEUR'
          | 'USDPEUR'
          | 'UNIEUR'
          | 'PYUSDEUR'
          | 'PYUSDGBP'
        )[]
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            prices: components['schemas']['MarketPrice'][]
            /** @description The same prices as `prices`. */
            items: components['schemas']['MarketPrice'][]
          }
        }
      }
    }
  }
  listHistoricalCandles: {
    parameters: {
      query?: {
        /** @description Upper bound on the number of points (int64, 1 or more): selects the finest increment with at most this many points in the range. Not together with `increment`. */
        max_data_points?: string | number
        /** @description Only candles that begin then or later. */
        'range.begin'?: string
        /** @description Only candles that begin then or earlier. */
        'range.end'?: string
        /**
         * @description Length of a candle. Not together with `max_data_points`.
         * @example ONE_HOUR
         */
        increment?:
          | 'ONE_MINUTE'
          | 'FIVE_MINUTES'
          | 'FIFTEEN_MINUTES'
          | 'THIRTY_MINUTES'
          | 'ONE_HOUR'
          | 'TWO_HOURS'
          | 'TWELVE_HOURS'
          | 'ONE_DAY'
          | 'ONE_WEEK'
          | 'TWO_WEEKS'
          | 'FOUR_WEEKS'
        /**
         * @description Page size.
         * @example 24
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path: {
        /**
         * @description Market, by its code.
         * @example BTCUSD
         */
        market:
          | 'ETHEUR'
          | 'ETHUSD'
          | 'BTCEUR'
          | 'BTCUSD'
          | 'PAXGUSD'
          | 'BCHUSD'
          | 'LTCUSD'
          | 'ETHGBP'
          | 'BTCGBP'
          | 'LTCGBP'
          | 'BCHGBP'
          | 'USDPUSD'
          | 'ETHBRL'
          | 'BTCBRL'
          | 'LTCBRL'
          | 'BCHBRL'
          | 'USDPGBP'
          | 'USDPBRL'
          | 'LINKUSD'
          | 'MATICUSD'
          | 'AAVEUSD'
          | 'UNIUSD'
          | 'AAVEMXN'
          | 'BCHMXN'
          | 'BTCMXN'
          | 'ETHMXN'
          | 'LTCMXN'
          | 'USDPMXN'
          | 'AAVEEUR'
          | 'BCHEUR'
          | 'LTCEUR'
          | 'LINKEUR'
          | 'MATICEUR'
          | 'PAXGEUR'
          | 'SOLEUR'
          | 'USDPEUR'
          | 'UNIEUR'
          | 'PYUSDEUR'
          | 'PYUSDGBP'
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            market: string
            /**
             * @description Length of the candles.
             * @enum {string}
             */
            increment:
              | 'ONE_MINUTE'
              | 'FIVE_MINUTES'
              | 'FIFTEEN_MINUTES'
              | 'THIRTY_MINUTES'
              | 'ONE_HOUR'
              | 'TWO_HOURS'
              | 'TWELVE_HOURS'
              | 'ONE_DAY'
              | 'ONE_WEEK'
              | 'TWO_WEEKS'
              | 'FOUR_WEEKS'
            items: components['schemas']['HistoricalCandle'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  listProfiles: {
    parameters: {
      query?: {
        /** @description Filter by profile ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /** @description Filter by nickname. */
        nickname?: string
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Profile'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createProfile: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /** @description Unique name of the profile. */
          nickname: string
          /** @description Free-text description. */
          description?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Profile']
        }
      }
    }
  }
  getProfile: {
    parameters: {
      query?: {
        /** @description False: a deactivated profile is not found. */
        include_deactivated?: boolean
      }
      header?: never
      path: {
        /**
         * @description Profile id.
         * @example 0192f3a4-0000-7000-8000-000000000002
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Profile']
        }
      }
    }
  }
  updateProfile: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Profile id.
         * @example 0192f3a4-0000-7000-8000-000000000005
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /** @description Unique name of the profile. */
          nickname?: string
          /** @description Free-text description. */
          description?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Profile']
        }
      }
    }
  }
  deactivateProfile: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Profile id.
         * @example 0192f3a4-0000-7000-8000-000000000002
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Profile']
        }
      }
    }
  }
  listBalanceHistory: {
    parameters: {
      query?: {
        /** @description Filter by assets. At most 100 values; repeat the parameter or separate with commas. */
        assets?: string[]
        /** @description Number of days, today included. */
        days?: number
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /** @description By ticker. */
            items: components['schemas']['BalanceHistory'][]
          }
        }
      }
    }
  }
  listProfileBalances: {
    parameters: {
      query?: {
        /** @description Filter by assets. At most 100 values; repeat the parameter or separate with commas. */
        assets?: string[]
        /** @description Moment of the balances. It counts the entries up to it, its own microsecond included. */
        at?: string
      }
      header?: never
      path: {
        /**
         * @description Profile id.
         * @example 0192f3a4-0000-7000-8000-000000000002
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Balance'][]
          }
        }
      }
    }
  }
  getProfileBalance: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Profile id.
         * @example 0192f3a4-0000-7000-8000-000000000002
         */
        id: string
        /**
         * @description Asset, by its ticker.
         * @example USD
         */
        asset: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Balance']
        }
      }
    }
  }
  listProfileEntries: {
    parameters: {
      query?: {
        /**
         * @description Filter by assets. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "USD"
         *     ]
         */
        assets?: string[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path: {
        /**
         * @description Profile id.
         * @example 0192f3a4-0000-7000-8000-000000000002
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['BalanceEntry'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  listIdentities: {
    parameters: {
      query?: {
        /** @description Filter by identity ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /** @description Filter by ref_ids. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /**
         * @description Filter by summary statuses. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "APPROVED"
         *     ]
         */
        summary_statuses?: ('PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED')[]
        /** @description Another name for summary_statuses. At most 100 values; repeat the parameter or separate with commas. */
        summary_status?: ('PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED')[]
        /** @description Filter by types. At most 100 values; repeat the parameter or separate with commas. */
        identity_type?: ('PERSON' | 'INSTITUTION')[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description updated_at strictly before. */
        'updated_at.lt'?: string
        /** @description updated_at before or equal. */
        'updated_at.lte'?: string
        /** @description updated_at exactly equal. */
        'updated_at.eq'?: string
        /** @description updated_at after or equal. */
        'updated_at.gte'?: string
        /** @description updated_at strictly after. */
        'updated_at.gt'?: string
        /** @description True: with tax_details and customer_due_diligence. False: without details. Absent: with details, without those two. */
        include_details?: boolean
        /** @description True: with the members of institutions. */
        include_institution_members?: boolean
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Identity'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createIdentity: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id: string
          /** @description A person. Other members are kept, 8 KiB at most in all. */
          person_details?: {
            /** @description First name. */
            first_name: string
            /** @description Last name. */
            last_name: string
            /**
             * Format: date
             * @description Date of birth.
             */
            date_of_birth?: string
            address?: {
              /** @description Text. */
              country?: string
              /** @description Text. */
              address1?: string
              /** @description Text. */
              address2?: string
              /** @description Text. */
              city?: string
              /** @description Text. */
              province?: string
              /** @description Text. */
              zip_code?: string
            } & {
              [key: string]: unknown
            }
            /** @description E-mail address. */
            email?: string
            /** @description Phone number. */
            phone_number?: string
            /** @description Nationality. */
            nationality?: string
          } & {
            [key: string]: unknown
          }
          /** @description An institution. Other members are kept, 8 KiB at most in all. */
          institution_details?: {
            /** @description Name. */
            name: string
            business_address?: {
              /** @description Text. */
              country?: string
              /** @description Text. */
              address1?: string
              /** @description Text. */
              address2?: string
              /** @description Text. */
              city?: string
              /** @description Text. */
              province?: string
              /** @description Text. */
              zip_code?: string
            } & {
              [key: string]: unknown
            }
            /** @description Kind of institution. */
            institution_type?: string
            /** @description E-mail address. */
            email?: string
          } & {
            [key: string]: unknown
          }
          /** @description Identities that stand behind the institution. */
          institution_members?: {
            /**
             * Format: uuid
             * @description Identity that stands behind the institution.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            identity_id: string
            /** @description Roles of the identity in the institution. */
            roles: (
              | 'BENEFICIAL_OWNER'
              | 'ACCOUNT_OPENER'
              | 'AUTHORIZED_USER'
              | 'MANAGEMENT_CONTROL_PERSON'
              | 'TRUSTEE'
              | 'GRANTOR'
              | 'BENEFICIARY'
            )[]
            /** @description Share of the institution that it owns. */
            ownership?: string
            /** @description Position in the institution. */
            position?: string
            /** @description Name. */
            name?: string
          }[]
          /** @description Tax ids. Answered to the requests that write them, and with `include_details=true`. */
          tax_details?: ({
            /** @description Tax id. */
            tax_payer_id?: string
            /** @description Country that issued the tax id. */
            tax_payer_country?: string
          } & {
            [key: string]: unknown
          })[]
          /** @description True if the law requires no tax details. */
          tax_details_not_required?: boolean
          /** @description Due diligence. Other members are kept, 8 KiB at most in all. Answered to the requests that write it, and with `include_details=true`. */
          customer_due_diligence?: {
            /** @description Estimated yearly income. */
            estimated_yearly_income?: string
            /** @description Expected value of transfers. */
            expected_transfer_value?: string
            /** @description Source of wealth. */
            source_of_wealth?: string
            /** @description Employment status. */
            employment_status?: string
            /** @description Sector of employment. */
            employment_industry_sector?: string
          } & {
            [key: string]: unknown
          }
          /** @description True if the identity is a merchant. */
          is_merchant?: boolean
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Identity']
        }
      }
    }
  }
  getIdentity: {
    parameters: {
      query?: {
        /** @description True: with tax_details and customer_due_diligence. False: without details. Absent: with details, without those two. */
        include_details?: boolean
        /** @description True: with the members of institutions. */
        include_institution_members?: boolean
      }
      header?: never
      path: {
        /**
         * @description Identity id.
         * @example 0192f3a4-0000-7000-8000-000000000003
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Identity']
        }
      }
    }
  }
  updateIdentity: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Identity id.
         * @example 0192f3a4-0000-7000-8000-000000000003
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description Identity id: that of the path.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          id?: string
          /** @description The ref_id of the identity. It cannot be changed. */
          ref_id?: string
          /** @description Members to change. Those that are not given stay. */
          person_details?: {
            /** @description First name. */
            first_name?: string
            /** @description Last name. */
            last_name?: string
            /**
             * Format: date
             * @description Date of birth.
             */
            date_of_birth?: string
            address?: {
              /** @description Text. */
              country?: string
              /** @description Text. */
              address1?: string
              /** @description Text. */
              address2?: string
              /** @description Text. */
              city?: string
              /** @description Text. */
              province?: string
              /** @description Text. */
              zip_code?: string
            } & {
              [key: string]: unknown
            }
            /** @description E-mail address. */
            email?: string
            /** @description Phone number. */
            phone_number?: string
            /** @description Nationality. */
            nationality?: string
          } & {
            [key: string]: unknown
          }
          /** @description Members to change. Those that are not given stay. */
          institution_details?: {
            /** @description Name. */
            name?: string
            business_address?: {
              /** @description Text. */
              country?: string
              /** @description Text. */
              address1?: string
              /** @description Text. */
              address2?: string
              /** @description Text. */
              city?: string
              /** @description Text. */
              province?: string
              /** @description Text. */
              zip_code?: string
            } & {
              [key: string]: unknown
            }
            /** @description Kind of institution. */
            institution_type?: string
            /** @description E-mail address. */
            email?: string
          } & {
            [key: string]: unknown
          }
          /** @description Tax ids. Answered to the requests that write them, and with `include_details=true`. */
          tax_details?: ({
            /** @description Tax id. */
            tax_payer_id?: string
            /** @description Country that issued the tax id. */
            tax_payer_country?: string
          } & {
            [key: string]: unknown
          })[]
          /** @description Sets tax_details_not_required. */
          set_tax_details_not_required?: boolean
          /** @description Due diligence. Other members are kept, 8 KiB at most in all. Answered to the requests that write it, and with `include_details=true`. */
          customer_due_diligence?: {
            /** @description Estimated yearly income. */
            estimated_yearly_income?: string
            /** @description Expected value of transfers. */
            expected_transfer_value?: string
            /** @description Source of wealth. */
            source_of_wealth?: string
            /** @description Employment status. */
            employment_status?: string
            /** @description Sector of employment. */
            employment_industry_sector?: string
          } & {
            [key: string]: unknown
          }
          /** @description True if the identity is a merchant. */
          is_merchant?: boolean
          /**
           * Format: date-time
           * @description Time of the last periodic verification.
           * @example 2026-01-31T09:30:00.123456Z
           */
          last_kyc_refresh_date?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
          /** @description Sets user_disabled. The administrator's flag and the status stay as they are. */
          set_user_disabled?: boolean
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Identity']
        }
      }
    }
  }
  addInstitutionMembers: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description Identity of the institution.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          institution_id: string
          /** @description Identities that stand behind the institution. */
          members: {
            /**
             * Format: uuid
             * @description Identity that stands behind the institution.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            identity_id: string
            /** @description Roles of the identity in the institution. */
            roles: (
              | 'BENEFICIAL_OWNER'
              | 'ACCOUNT_OPENER'
              | 'AUTHORIZED_USER'
              | 'MANAGEMENT_CONTROL_PERSON'
              | 'TRUSTEE'
              | 'GRANTOR'
              | 'BENEFICIARY'
            )[]
            /** @description Share of the institution that it owns. */
            ownership?: string
            /** @description Position in the institution. */
            position?: string
            /** @description Name. */
            name?: string
          }[]
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /**
             * Format: uuid
             * @description Identity of the institution.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            institution_id: string
            /** @description The members that were added. */
            members: {
              /**
               * Format: uuid
               * @description Member id.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              id: string
              /**
               * Format: uuid
               * @description Identity that stands behind the institution.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              identity_id: string
              /** @description Roles of the identity in the institution. */
              roles: (
                | 'BENEFICIAL_OWNER'
                | 'ACCOUNT_OPENER'
                | 'AUTHORIZED_USER'
                | 'MANAGEMENT_CONTROL_PERSON'
                | 'TRUSTEE'
                | 'GRANTOR'
                | 'BENEFICIARY'
              )[]
              /** @description Share of the institution that it owns. */
              ownership?: string
              /** @description Position in the institution. */
              position?: string
              /** @description Name. */
              name?: string
            }[]
          }
        }
      }
    }
  }
  removeInstitutionMember: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Member id.
         * @example 0192f3a4-0000-7000-8000-0000000000d2
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': Record<string, never>
        }
      }
    }
  }
  setIdentitySandboxStatus: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Identity id.
         * @example 0192f3a4-0000-7000-8000-000000000003
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Status of the verification.
           * @enum {string}
           */
          status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
          /**
           * @description Simulated result of the verification of the person.
           * @enum {string}
           */
          id_verification_status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
          /**
           * @description Simulated result of the screening for sanctions.
           * @enum {string}
           */
          sanctions_verification_status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
          /**
           * @description Simulated result of the verification of documents.
           * @enum {string}
           */
          document_verification_status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
          /**
           * @description Simulated result of the additional screening.
           * @enum {string}
           */
          additional_screening_status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
          /** @description True if disabled by the API user. */
          user_disabled?:
            | boolean
            | {
                /** @description The flag. */
                disabled: boolean
              }
          /** @description True if disabled by a platform administrator. */
          admin_disabled?:
            | boolean
            | {
                /** @description The flag. */
                disabled: boolean
              }
        }
      }
    }
    responses: {
      /** @description The identity; empty where the request named checks or flags in objects. */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /**
             * Format: uuid
             * @description Identity id.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            id?: string
            /**
             * Format: uuid
             * @description Customer id.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            customer_id?: string
            /**
             * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
             * @example payout-2026-0001
             */
            ref_id?: string
            /**
             * @description Kind of identity, and of its details.
             * @enum {string}
             */
            type?: 'PERSON' | 'INSTITUTION'
            /**
             * @description Status of the verification.
             * @enum {string}
             */
            status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
            /**
             * @description DISABLED by either flag, else the status.
             * @enum {string}
             */
            summary_status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
            /** @description True if disabled by the API user. */
            user_disabled?: boolean
            /** @description True if disabled by a platform administrator. */
            admin_disabled?: boolean
            /** @description The same as person_details or institution_details. Absent only with `include_details=false`. */
            details?: {
              [key: string]: unknown
            }
            /** @description A person. Other members are kept, 8 KiB at most in all. */
            person_details?: {
              /** @description First name. */
              first_name: string
              /** @description Last name. */
              last_name: string
              /**
               * Format: date
               * @description Date of birth.
               */
              date_of_birth?: string
              address?: {
                /** @description Text. */
                country?: string
                /** @description Text. */
                address1?: string
                /** @description Text. */
                address2?: string
                /** @description Text. */
                city?: string
                /** @description Text. */
                province?: string
                /** @description Text. */
                zip_code?: string
              } & {
                [key: string]: unknown
              }
              /** @description E-mail address. */
              email?: string
              /** @description Phone number. */
              phone_number?: string
              /** @description Nationality. */
              nationality?: string
            } & {
              [key: string]: unknown
            }
            /** @description An institution. Other members are kept, 8 KiB at most in all. */
            institution_details?: {
              /** @description Name. */
              name: string
              business_address?: {
                /** @description Text. */
                country?: string
                /** @description Text. */
                address1?: string
                /** @description Text. */
                address2?: string
                /** @description Text. */
                city?: string
                /** @description Text. */
                province?: string
                /** @description Text. */
                zip_code?: string
              } & {
                [key: string]: unknown
              }
              /** @description Kind of institution. */
              institution_type?: string
              /** @description E-mail address. */
              email?: string
            } & {
              [key: string]: unknown
            }
            /** @description Tax ids. Answered to the requests that write them, and with `include_details=true`. */
            tax_details?: ({
              /** @description Tax id. */
              tax_payer_id?: string
              /** @description Country that issued the tax id. */
              tax_payer_country?: string
            } & {
              [key: string]: unknown
            })[]
            /** @description True if the law requires no tax details. */
            tax_details_not_required?: boolean
            /** @description Due diligence. Other members are kept, 8 KiB at most in all. Answered to the requests that write it, and with `include_details=true`. */
            customer_due_diligence?: {
              /** @description Estimated yearly income. */
              estimated_yearly_income?: string
              /** @description Expected value of transfers. */
              expected_transfer_value?: string
              /** @description Source of wealth. */
              source_of_wealth?: string
              /** @description Employment status. */
              employment_status?: string
              /** @description Sector of employment. */
              employment_industry_sector?: string
            } & {
              [key: string]: unknown
            }
            /** @description Identities that stand behind an institution. Answered to the requests that write them, and with `include_institution_members=true`. */
            institution_members?: {
              /**
               * Format: uuid
               * @description Member id.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              id: string
              /**
               * Format: uuid
               * @description Identity that stands behind the institution.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              identity_id: string
              /** @description Roles of the identity in the institution. */
              roles: (
                | 'BENEFICIAL_OWNER'
                | 'ACCOUNT_OPENER'
                | 'AUTHORIZED_USER'
                | 'MANAGEMENT_CONTROL_PERSON'
                | 'TRUSTEE'
                | 'GRANTOR'
                | 'BENEFICIARY'
              )[]
              /** @description Share of the institution that it owns. */
              ownership?: string
              /** @description Position in the institution. */
              position?: string
              /** @description Name. */
              name?: string
            }[]
            /** @description True if the identity is a merchant. */
            is_merchant?: boolean
            /**
             * Format: date-time
             * @description Time of the last periodic verification.
             * @example 2026-01-31T09:30:00.123456Z
             */
            last_kyc_refresh_date?: string
            /**
             * @description Up to 6 pairs of strings; each key and value at most 100 characters.
             * @example {
             *       "order": "1041"
             *     }
             */
            metadata?: {
              [key: string]: string
            }
            /**
             * Format: date-time
             * @description Creation time.
             * @example 2026-01-31T09:30:00.123456Z
             */
            created_at?: string
            /**
             * Format: date-time
             * @description Last update time.
             * @example 2026-01-31T09:30:00.123456Z
             */
            updated_at?: string
          }
        }
      }
    }
  }
  listStablecoinConversions: {
    parameters: {
      query?: {
        /**
         * @description Filter by profiles. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "0192f3a4-0000-7000-8000-000000000002"
         *     ]
         */
        profile_id?: string[]
        /** @description Filter by ref_ids. At most 100 values; repeat the parameter. */
        ref_id?: string[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['StablecoinConversion'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createStablecoinConversion: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description Profile whose balances change.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
          /**
           * @description Amount to convert, in the source asset.
           * @example 25.5
           */
          amount: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          source_asset: string
          /**
           * @description Asset, by its ticker.
           * @example USDP
           */
          target_asset: string
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * Format: uuid
           * @description Identity that asks for it.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account that asks for it.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['StablecoinConversion']
        }
      }
    }
  }
  getStablecoinConversion: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the conversion.
         * @example 0192f3a4-0000-7000-8000-000000000009
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['StablecoinConversion']
        }
      }
    }
  }
  listDepositAddresses: {
    parameters: {
      query?: {
        /** @description Filter by ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /**
         * @description Filter by profiles. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "0192f3a4-0000-7000-8000-000000000002"
         *     ]
         */
        profile_ids?: string[]
        /** @description Filter by ref_ids. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /** @description Filter by addresses, in the form in which they were returned. At most 100 values; repeat the parameter or separate with commas. */
        addresses?: string[]
        /** @description Filter by networks. At most 100 values; repeat the parameter or separate with commas. */
        crypto_networks?: (
          | 'BITCOIN'
          | 'ETHEREUM'
          | 'BITCOIN_CASH'
          | 'LITECOIN'
          | 'SOLANA'
          | 'POLYGON_POS'
          | 'BASE'
          | 'ARBITRUM_ONE'
          | 'STELLAR'
          | 'INK'
          | 'XLAYER'
        )[]
        /** @description Filter by networks, as crypto_networks does. At most 100 values; repeat the parameter or separate with commas. */
        networks?: (
          | 'BITCOIN'
          | 'ETHEREUM'
          | 'BITCOIN_CASH'
          | 'LITECOIN'
          | 'SOLANA'
          | 'POLYGON_POS'
          | 'BASE'
          | 'ARBITRUM_ONE'
          | 'STELLAR'
          | 'INK'
          | 'XLAYER'
        )[]
        /** @description Filter by identities. At most 100 values; repeat the parameter or separate with commas. */
        identity_ids?: string[]
        /** @description Filter by accounts. At most 100 values; repeat the parameter or separate with commas. */
        account_ids?: string[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['DepositAddress'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createDepositAddress: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description Profile to credit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          crypto_network:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
          /**
           * Format: uuid
           * @description Identity that deposits.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account that deposits.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
          /**
           * @description What a deposit of a platform-issued stablecoin is credited as.
           * @default NO_CONVERSION
           * @enum {string}
           */
          conversion_target_asset?: 'NO_CONVERSION' | 'USD'
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['DepositAddress']
        }
      }
    }
  }
  putCryptoDestinationAddress: {
    parameters: {
      query?: {
        /** @description The approval of this change, from the 403 `approval-required` of the same request before. */
        approval_id?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description The address to update. Instead of crypto_network, address and identity_id.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          id?: string
          /**
           * @description Blockchain network.
           * @example ETHEREUM
           * @enum {string}
           */
          crypto_network?:
            | 'BITCOIN'
            | 'ETHEREUM'
            | 'BITCOIN_CASH'
            | 'LITECOIN'
            | 'SOLANA'
            | 'POLYGON_POS'
            | 'BASE'
            | 'ARBITRUM_ONE'
            | 'STELLAR'
            | 'INK'
            | 'XLAYER'
          /**
           * @description The address to create or update.
           * @example 0x52908400098527886E0F7030069857D2E4169EE7
           */
          address?: string
          /**
           * Format: uuid
           * @description Identity that owns the address.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /** @description Display name. A new address without one is named after itself. */
          nickname?: string
          /** @description Marks the address; false by default. */
          bookmarked_status?: boolean
          /** @description Facts for the travel rule. */
          travelrule_metadata?: {
            [key: string]: unknown
          }
          /**
           * @description Rejects the address for good: it can never be paid by its id again.
           * @enum {string}
           */
          status?: 'REJECTED'
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            address: components['schemas']['CryptoDestinationAddress']
          }
        }
      }
    }
  }
  listCryptoDestinationAddresses: {
    parameters: {
      query?: {
        /** @description Filter by ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /**
         * @description Filter by networks. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "ETHEREUM"
         *     ]
         */
        crypto_networks?: (
          | 'BITCOIN'
          | 'ETHEREUM'
          | 'BITCOIN_CASH'
          | 'LITECOIN'
          | 'SOLANA'
          | 'POLYGON_POS'
          | 'BASE'
          | 'ARBITRUM_ONE'
          | 'STELLAR'
          | 'INK'
          | 'XLAYER'
        )[]
        /** @description Filter by addresses, as they were sent. At most 100 values; repeat the parameter or separate with commas. */
        addresses?: string[]
        /** @description Filter by statuses. At most 100 values; repeat the parameter or separate with commas. */
        statuses?: ('PENDING' | 'APPROVED' | 'REJECTED')[]
        /** @description Filter by identities. At most 100 values; repeat the parameter or separate with commas. */
        identity_ids?: string[]
        /** @description Filter by nicknames. At most 100 values; repeat the parameter. */
        nicknames?: string[]
        /** @description Filter by the mark, as bookmarked does. */
        bookmarked_status?: boolean
        /** @description Filter by the mark. */
        bookmarked?: boolean
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['CryptoDestinationAddress'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  listFiatAccounts: {
    parameters: {
      query?: {
        /** @description Filter by ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /** @description Filter by ref_ids. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /**
         * @description Filter by identities. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "0192f3a4-0000-7000-8000-000000000003"
         *     ]
         */
        identity_ids?: string[]
        /** @description Filter by accounts. At most 100 values; repeat the parameter or separate with commas. */
        account_ids?: string[]
        /** @description Filter by statuses. At most 100 values; repeat the parameter or separate with commas. */
        statuses?: ('PENDING' | 'APPROVED' | 'REJECTED')[]
        /** @description True: with deleted fiat accounts. */
        include_deleted?: boolean
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['FiatAccount'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createFiatAccount: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /** @description Whose bank account it is: person_details or institution_details. Other members are kept, 8 KiB at most in all. */
          fiat_account_owner: {
            person_details?: {
              /** @description Name. */
              first_name: string
              /** @description Name. */
              last_name: string
            } & {
              [key: string]: unknown
            }
            institution_details?: {
              /** @description Name. */
              name: string
            } & {
              [key: string]: unknown
            }
          } & {
            [key: string]: unknown
          }
          /** @description How the bank account is reached. */
          fiat_network_instructions: {
            wire: {
              /** @description Text. */
              account_number?: string
              /**
               * @description Kind of bank account.
               * @enum {string}
               */
              account_type?: 'CHECKING' | 'SAVINGS'
              fiat_account_owner_address?: {
                /** @description Text. */
                country?: string
                /** @description Text. */
                address1?: string
                /** @description Text. */
                address2?: string
                /** @description Text. */
                city?: string
                /** @description Text. */
                province?: string
                /** @description Text. */
                zip_code?: string
              } & {
                [key: string]: unknown
              }
              routing_details?: {
                /**
                 * @description Kind of routing number.
                 * @enum {string}
                 */
                routing_number_type?: 'ABA' | 'SWIFT'
                /** @description Text. */
                routing_number?: string
                /** @description Text. */
                bank_name?: string
                bank_address?: {
                  /** @description Text. */
                  country?: string
                  /** @description Text. */
                  address1?: string
                  /** @description Text. */
                  address2?: string
                  /** @description Text. */
                  city?: string
                  /** @description Text. */
                  province?: string
                  /** @description Text. */
                  zip_code?: string
                } & {
                  [key: string]: unknown
                }
              } & {
                [key: string]: unknown
              }
            } & {
              [key: string]: unknown
            }
          }
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * Format: uuid
           * @description Identity of the owner.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account of the owner.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['FiatAccount']
        }
      }
    }
  }
  getFiatAccount: {
    parameters: {
      query?: {
        /** @description True: also a deleted fiat account. */
        include_deleted?: boolean
      }
      header?: never
      path: {
        /**
         * @description Id of the fiat account.
         * @example 0192f3a4-0000-7000-8000-000000000006
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['FiatAccount']
        }
      }
    }
  }
  updateFiatAccount: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the fiat account.
         * @example 0192f3a4-0000-7000-8000-000000000006
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
          /** @description Whose bank account it is: person_details or institution_details. Other members are kept, 8 KiB at most in all. */
          fiat_account_owner?: {
            person_details?: {
              /** @description Name. */
              first_name: string
              /** @description Name. */
              last_name: string
            } & {
              [key: string]: unknown
            }
            institution_details?: {
              /** @description Name. */
              name: string
            } & {
              [key: string]: unknown
            }
          } & {
            [key: string]: unknown
          }
          /** @description How the bank account is reached. */
          fiat_network_instructions?: {
            wire: {
              /** @description Text. */
              account_number?: string
              /**
               * @description Kind of bank account.
               * @enum {string}
               */
              account_type?: 'CHECKING' | 'SAVINGS'
              fiat_account_owner_address?: {
                /** @description Text. */
                country?: string
                /** @description Text. */
                address1?: string
                /** @description Text. */
                address2?: string
                /** @description Text. */
                city?: string
                /** @description Text. */
                province?: string
                /** @description Text. */
                zip_code?: string
              } & {
                [key: string]: unknown
              }
              routing_details?: {
                /**
                 * @description Kind of routing number.
                 * @enum {string}
                 */
                routing_number_type?: 'ABA' | 'SWIFT'
                /** @description Text. */
                routing_number?: string
                /** @description Text. */
                bank_name?: string
                bank_address?: {
                  /** @description Text. */
                  country?: string
                  /** @description Text. */
                  address1?: string
                  /** @description Text. */
                  address2?: string
                  /** @description Text. */
                  city?: string
                  /** @description Text. */
                  province?: string
                  /** @description Text. */
                  zip_code?: string
                } & {
                  [key: string]: unknown
                }
              } & {
                [key: string]: unknown
              }
            } & {
              [key: string]: unknown
            }
          }
          /**
           * Format: uuid
           * @description Id of the fiat account.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          id?: string
          /**
           * Format: uuid
           * @description Customer.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          customer_id?: string
          /**
           * @description Status.
           * @enum {string}
           */
          status?: 'PENDING' | 'APPROVED' | 'REJECTED'
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * Format: uuid
           * @description Identity of the owner.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account of the owner.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /**
           * Format: date-time
           * @description Creation time.
           * @example 2026-01-31T09:30:00.123456Z
           */
          created_at?: string
          /**
           * Format: date-time
           * @description Last update time.
           * @example 2026-01-31T09:30:00.123456Z
           */
          updated_at?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['FiatAccount']
        }
      }
    }
  }
  deleteFiatAccount: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the fiat account.
         * @example 0192f3a4-0000-7000-8000-000000000006
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['FiatAccount']
        }
      }
    }
  }
  listFiatDepositInstructions: {
    parameters: {
      query?: {
        /** @description Filter by ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /**
         * @description Filter by profiles. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "0192f3a4-0000-7000-8000-000000000002"
         *     ]
         */
        profile_ids?: string[]
        /** @description Filter by ref_ids. At most 100 values; repeat the parameter. */
        ref_ids?: string[]
        /** @description Filter by fiat networks. At most 100 values; repeat the parameter or separate with commas. */
        networks?: 'WIRE'[]
        /** @description Filter by identities. At most 100 values; repeat the parameter or separate with commas. */
        identity_ids?: string[]
        /** @description Filter by accounts. At most 100 values; repeat the parameter or separate with commas. */
        account_ids?: string[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['FiatDepositInstructions'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createFiatDepositInstructions: {
    parameters: {
      query?: never
      header?: {
        /** @description The `ref_id`, where the body has none. A repeat is a 409 with the existing record. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description Profile to credit.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          profile_id: string
          /**
           * @description Fiat network.
           * @enum {string}
           */
          fiat_network: 'WIRE'
          /**
           * @description Kind of routing number.
           * @enum {string}
           */
          routing_number_type?: 'ABA' | 'SWIFT'
          /**
           * @description Client-specified id for replay protection and lookup: a second record with it is refused with 409.
           * @example payout-2026-0001
           */
          ref_id?: string
          /**
           * Format: uuid
           * @description Identity that deposits.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          identity_id?: string
          /**
           * Format: uuid
           * @description Account that deposits.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          account_id?: string
          /**
           * @description Up to 6 pairs of strings; each key and value at most 100 characters.
           * @example {
           *       "order": "1041"
           *     }
           */
          metadata?: {
            [key: string]: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['FiatDepositInstructions']
        }
      }
    }
  }
  getFiatDepositInstructions: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the instructions.
         * @example 0192f3a4-0000-7000-8000-00000000000a
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['FiatDepositInstructions']
        }
      }
    }
  }
  listAssets: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Asset'][]
          }
        }
      }
    }
  }
  listNetworks: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['NetworkRecord'][]
          }
        }
      }
    }
  }
  searchRecords: {
    parameters: {
      query: {
        /**
         * @description An id, `ref_id`, transaction hash, address or memo.
         * @example 0192f3a4-0000-7000-8000-000000000009
         */
        q: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['FoundRecord'][]
          }
        }
      }
    }
  }
  listEvents: {
    parameters: {
      query?: {
        /** @description Filter by one type. A type that does not exist has no events. */
        type?: string
        /**
         * @description Filter by types, or by beginnings of types such as `transfer.*`. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "transfer.*",
         *       "orchestration.completed"
         *     ]
         */
        types?: string[]
        /** @description Filter by the record whose status changed. */
        object_id?: string
        /** @description True: only the events of tests of webhooks. */
        is_test?: boolean
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            events: components['schemas']['Event'][]
            /** @description The same records as `events`. */
            items: components['schemas']['Event'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  getEvent: {
    parameters: {
      query?: {
        /** @description True: only an event of the test of a webhook is found; false: only another one. */
        is_test?: boolean
      }
      header?: never
      path: {
        /**
         * @description Event id.
         * @example 0192f3a4-0000-7000-8000-0000000000e3
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Event']
        }
      }
    }
  }
  resendEvent: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the event.
         * @example 0192f3a4-0000-7000-8000-0000000000e3
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description The only webhook that gets it.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          webhook_id?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            deliveries: components['schemas']['WebhookDelivery'][]
          }
        }
      }
    }
  }
  listWebhooks: {
    parameters: {
      query?: {
        /** @description Filter by statuses. At most 100 values; repeat the parameter or separate with commas. */
        statuses?: ('ACTIVE' | 'DISABLED')[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Webhook'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  createWebhook: {
    parameters: {
      query?: {
        /** @description The approval of this change, from the 403 `approval-required` of the same request before. */
        approval_id?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Name, unique for the customer.
           * @example Payments
           */
          name: string
          /**
           * @description Where deliveries are sent. HTTPS; in sandbox mode also HTTP.
           * @example https://hooks.example.com/bursar
           */
          url: string
          /**
           * @description Types of events: *, beginnings such as transfer.*, and names.
           * @example [
           *       "transfer.*",
           *       "orchestration.completed"
           *     ]
           */
          event_types: string[]
          /**
           * @description THIN: the event without its object. FULL: a CloudEvent with the object.
           * @default THIN
           * @enum {string}
           */
          payload?: 'THIN' | 'FULL'
          /** @description How deliveries authenticate, besides their signature. */
          auth?: {
            /**
             * @description NONE: only the signature. API_KEY: an API key in a header. OAUTH2_CLIENT_CREDENTIALS: a bearer token (RFC 6749, 4.4).
             * @enum {string}
             */
            type: 'NONE' | 'API_KEY' | 'OAUTH2_CLIENT_CREDENTIALS'
            /**
             * @description API_KEY: the name of the header.
             * @example x-api-key
             */
            header?: string
            /** @description OAuth 2: the token endpoint. */
            token_url?: string
            /** @description OAuth 2: the client. */
            client_id?: string
            /** @description OAuth 2: the scope asked for. */
            scope?: string
            /** @description API_KEY: the key. It is never answered. */
            key?: string
            /** @description OAuth 2: the client's secret. It is never answered. */
            client_secret?: string
          }
          /** @description Only events of transfers and orchestrations of these profiles. None: all events. */
          profile_ids?: string[]
          /**
           * @description Most deliveries a second.
           * @default 10
           * @example 10
           */
          rate_limit?: number
          /**
           * @description DISABLED: nothing is delivered.
           * @default ACTIVE
           * @enum {string}
           */
          status?: 'ACTIVE' | 'DISABLED'
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            webhook: components['schemas']['Webhook']
            /** @description The signing secret. It is not shown again. */
            secret: string
          }
        }
      }
    }
  }
  getWebhook: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the webhook.
         * @example 0192f3a4-0000-7000-8000-0000000000e1
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Webhook']
        }
      }
    }
  }
  updateWebhook: {
    parameters: {
      query?: {
        /** @description The approval of this change, from the 403 `approval-required` of the same request before. */
        approval_id?: string
      }
      header?: never
      path: {
        /**
         * @description Id of the webhook.
         * @example 0192f3a4-0000-7000-8000-0000000000e1
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Name, unique for the customer.
           * @example Payments
           */
          name?: string
          /**
           * @description Where deliveries are sent. HTTPS; in sandbox mode also HTTP.
           * @example https://hooks.example.com/bursar
           */
          url?: string
          /**
           * @description Types of events: *, beginnings such as transfer.*, and names.
           * @example [
           *       "transfer.*",
           *       "orchestration.completed"
           *     ]
           */
          event_types?: string[]
          /**
           * @description THIN: the event without its object. FULL: a CloudEvent with the object.
           * @enum {string}
           */
          payload?: 'THIN' | 'FULL'
          /** @description How deliveries authenticate, besides their signature. */
          auth?: {
            /**
             * @description NONE: only the signature. API_KEY: an API key in a header. OAUTH2_CLIENT_CREDENTIALS: a bearer token (RFC 6749, 4.4).
             * @enum {string}
             */
            type: 'NONE' | 'API_KEY' | 'OAUTH2_CLIENT_CREDENTIALS'
            /**
             * @description API_KEY: the name of the header.
             * @example x-api-key
             */
            header?: string
            /** @description OAuth 2: the token endpoint. */
            token_url?: string
            /** @description OAuth 2: the client. */
            client_id?: string
            /** @description OAuth 2: the scope asked for. */
            scope?: string
            /** @description API_KEY: the key. It is never answered. */
            key?: string
            /** @description OAuth 2: the client's secret. It is never answered. */
            client_secret?: string
          }
          /** @description Only events of transfers and orchestrations of these profiles. None: all events. */
          profile_ids?: string[]
          /**
           * @description Most deliveries a second.
           * @example 10
           */
          rate_limit?: number
          /**
           * @description DISABLED: nothing is delivered.
           * @enum {string}
           */
          status?: 'ACTIVE' | 'DISABLED'
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Webhook']
        }
      }
    }
  }
  deleteWebhook: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the webhook.
         * @example 0192f3a4-0000-7000-8000-0000000000e2
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Webhook']
        }
      }
    }
  }
  rotateWebhookSecret: {
    parameters: {
      query?: {
        /** @description The approval of this change, from the 403 `approval-required` of the same request before. */
        approval_id?: string
      }
      header?: never
      path: {
        /**
         * @description Id of the webhook.
         * @example 0192f3a4-0000-7000-8000-0000000000e1
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description How long the previous secret signs, too. 0: no longer.
           * @default 86400
           */
          grace_seconds?: number
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            webhook: components['schemas']['Webhook']
            /** @description The new signing secret. It is not shown again. */
            secret: string
          }
        }
      }
    }
  }
  testWebhook: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the webhook.
         * @example 0192f3a4-0000-7000-8000-0000000000e1
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description Type of the event.
           * @example transfer.crypto_withdrawal.completed
           */
          type: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['WebhookDelivery']
        }
      }
    }
  }
  recoverWebhook: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the webhook.
         * @example 0192f3a4-0000-7000-8000-0000000000e1
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: date-time
           * @description Events from then on.
           * @example 2026-01-31T09:30:00.123456Z
           */
          since: string
          /**
           * Format: date-time
           * @description Events before then (default: until now).
           * @example 2026-01-31T09:30:00.123456Z
           */
          until?: string
          /** @description `next_page_cursor` of the previous page. */
          page_cursor?: string
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /** @description Deliveries that are due now because of this request. */
            recovered: number
            /** @description Send it as page_cursor to continue. Absent: all events were looked at. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  listWebhookDeliveries: {
    parameters: {
      query?: {
        /** @description FAILED: no attempt succeeded, and none is left. Recover or resend starts again. */
        status?: 'PENDING' | 'DELIVERED' | 'FAILED'
        /** @description Filter by the type of the event, or by its beginning such as transfer.*. */
        type?: string
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path: {
        /**
         * @description Id of the webhook.
         * @example 0192f3a4-0000-7000-8000-0000000000e1
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['WebhookDelivery'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  listDeliveryAttempts: {
    parameters: {
      query?: {
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path: {
        /**
         * @description Id of the webhook.
         * @example 0192f3a4-0000-7000-8000-0000000000e1
         */
        id: string
        /**
         * @description Id of the delivery: that of its event.
         * @example 0192f3a4-0000-7000-8000-0000000000e3
         */
        delivery_id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['WebhookAttempt'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  getPolicy: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Policy']
        }
      }
    }
  }
  putPolicy: {
    parameters: {
      query?: {
        /** @description The approval of this change, from the 403 `approval-required` of the same request before. */
        approval_id?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /** @description The rules, in order: the first that decides wins. A payment that none decides is allowed. */
          rules: {
            /** @description Id of the rule, which refusals name. Its counts go with it from version to version. */
            id?: string
            /** @description Why the rule exists. */
            description?: string
            /** @description The payments that the rule fits. An absent member fits all; a rule without any fits every payment. */
            match?: {
              /** @description Ids of the API clients or operators that make the payment. An orchestration counts as made by the client that made it or its rule. */
              client_ids?: string[]
              /** @description Profiles that pay. */
              profile_ids?: string[]
              /** @description Identities that pay: the payment's own, and that of its account and of its profile's account. */
              identity_ids?: string[]
              /** @description Kinds of payment. */
              transfer_types?: (
                | 'CRYPTO_WITHDRAWAL'
                | 'WIRE_WITHDRAWAL'
                | 'INTERNAL_TRANSFER_DEBIT'
                | 'PAXOS_TRANSFER_DEBIT'
              )[]
              /** @description Assets that are paid. */
              assets?: string[]
              /** @description Networks that the payment goes over. Internal transfers go over none. */
              networks?: (
                | 'BITCOIN'
                | 'ETHEREUM'
                | 'BITCOIN_CASH'
                | 'LITECOIN'
                | 'SOLANA'
                | 'POLYGON_POS'
                | 'BASE'
                | 'ARBITRUM_ONE'
                | 'STELLAR'
                | 'INK'
                | 'XLAYER'
                | 'WIRE'
              )[]
              /** @description ANY; ADDRESS_BOOK: an APPROVED address of the address book; or a list of ids of such addresses, of fiat accounts and of profiles. */
              destination?: ('ANY' | 'ADDRESS_BOOK') | string[]
            }
            limit?: {
              /**
               * @description The limit. The total of a payment counts, its fee included.
               * @example 25.5
               */
              amount: string
              /**
               * @description USD: the value in USD of payments of any asset. Another asset: payments of that asset only.
               * @example USD
               */
              asset: string
              /** @description The limit holds for all payments of any period of this length; 0: for each one. */
              period_seconds: number
              /**
               * @description Whose payments are counted together; CUSTOMER by default. PROFILE is no limit of a customer: who makes profiles and moves money between them has it several times.
               * @enum {string}
               */
              per?: 'PROFILE' | 'IDENTITY' | 'CUSTOMER' | 'DESTINATION'
            }
            /**
             * @description With a limit, ALLOW decides while the payment stays within it, BLOCK and APPROVE when it goes beyond it.
             * @enum {string}
             */
            action: 'ALLOW' | 'BLOCK' | 'APPROVE'
            /** @description How many different approvers must say yes. */
            approvals?: number
            /** @description Role of the approvers who decide; APPROVER by default. */
            role?: string
          }[]
          /** @description Terms of approvals. */
          approvals?: {
            /** @description How long approvers have to decide; a day by default. */
            deadline_seconds: number
          }
          /** @description Terms of the address book. */
          address_book?: {
            /** @description How long a new address waits before it can be paid by its id. */
            cooling_seconds: number
          }
          /** @description Changes that need approval. */
          changes?: {
            subjects: ('POLICY' | 'APPROVERS' | 'WEBHOOKS' | 'CREDENTIALS' | 'OPERATORS' | 'ADDRESS_BOOK')[]
            /** @description How many different approvers must say yes. */
            approvals: number
            /** @description Role of the approvers who decide; APPROVER by default. */
            role?: string
          }
          /** @description The version that was read: 409 if it is not the newest any more. 0: there is none. */
          replaces?: number
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Policy']
        }
      }
    }
  }
  listPolicyVersions: {
    parameters: {
      query?: {
        /** @description Only versions with a lower number. */
        before?: number
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: {
              policy: components['schemas']['Policy']
              /** @description False: its MAC is wrong or its master key is not configured, and nothing is paid under it. */
              trusted: boolean
            }[]
          }
        }
      }
    }
  }
  listTransferLimits: {
    parameters: {
      query?: {
        /** @description Transfer type. */
        transfer_type?:
          | 'CRYPTO_WITHDRAWAL'
          | 'WIRE_WITHDRAWAL'
          | 'INTERNAL_TRANSFER_DEBIT'
          | 'PAXOS_TRANSFER_DEBIT'
        /** @description Only the limits that can concern this profile. */
        profile_id?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: {
              /** @description Id of the limit for its subject. */
              id: string
              /** @description The rule. */
              rule_id: string
              /**
               * @description What the rule does.
               * @enum {string}
               */
              action: 'ALLOW' | 'BLOCK' | 'APPROVE'
              /** @description The payments that the rule can fit. */
              transfer_types: (
                | 'CRYPTO_WITHDRAWAL'
                | 'WIRE_WITHDRAWAL'
                | 'INTERNAL_TRANSFER_DEBIT'
                | 'PAXOS_TRANSFER_DEBIT'
              )[]
              /**
               * @description Whose payments are counted together.
               * @enum {string}
               */
              per: 'PROFILE' | 'IDENTITY' | 'CUSTOMER' | 'DESTINATION'
              /** @description The profile, identity or destination; absent for the whole customer. */
              subject?: string
              /** @description The length of the period; 0: each payment. */
              period_seconds: number
              /**
               * @description The limit.
               * @example 25.5
               */
              limit: string
              /**
               * @description What is left of it now.
               * @example 25.5
               */
              remaining: string
              /**
               * @description Asset, by its ticker.
               * @example USDP
               */
              limit_asset: string
            }[]
          }
        }
      }
    }
  }
  listApprovals: {
    parameters: {
      query?: {
        /**
         * @description Filter by statuses. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "PENDING"
         *     ]
         */
        statuses?: ('PENDING' | 'APPROVED' | 'REJECTED' | 'EXPIRED' | 'CANCELLED' | 'USED')[]
        /** @description Filter by the withdrawals that they are of. At most 100 values; repeat the parameter or separate with commas. */
        transfer_ids?: string[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['Approval'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  getApproval: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the approval.
         * @example 0192f3a4-0000-7000-8000-0000000000a1
         */
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            approval: components['schemas']['Approval']
            /** @description The texts to sign, byte for byte. */
            to_sign: {
              /** @description The text that an approver signs to approve. */
              APPROVE: string
              /** @description The text that an approver signs to reject. */
              REJECT: string
            }
          }
        }
      }
    }
  }
  approveApproval: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the approval.
         * @example 0192f3a4-0000-7000-8000-0000000000a1
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description The approver who signed.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          approver_id: string
          /** @description A compact JWS of the text, by the approver's key. Its typ is bursar-approval+jws. */
          jws?: string
          /** @description An assertion of the approver's passkey, whose challenge is the SHA-256 of the text. */
          passkey?: {
            /** @description authenticatorData of the assertion. */
            authenticator_data: string
            /** @description clientDataJSON of the assertion. */
            client_data_json: string
            /** @description signature of the assertion. */
            signature: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Approval']
        }
      }
    }
  }
  rejectApproval: {
    parameters: {
      query?: never
      header?: never
      path: {
        /**
         * @description Id of the approval.
         * @example 0192f3a4-0000-7000-8000-0000000000a1
         */
        id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * Format: uuid
           * @description The approver who signed.
           * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
           */
          approver_id: string
          /** @description A compact JWS of the text, by the approver's key. Its typ is bursar-approval+jws. */
          jws?: string
          /** @description An assertion of the approver's passkey, whose challenge is the SHA-256 of the text. */
          passkey?: {
            /** @description authenticatorData of the assertion. */
            authenticator_data: string
            /** @description clientDataJSON of the assertion. */
            client_data_json: string
            /** @description signature of the assertion. */
            signature: string
          }
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': components['schemas']['Approval']
        }
      }
    }
  }
  listAuditLog: {
    parameters: {
      query?: {
        /** @description API_CLIENT: a program of the customer. OPERATOR: a person who signed in. WORKER: a loop of Bursar. COMMAND_LINE: a user of the operating system. */
        actor_type?: 'API_CLIENT' | 'OPERATOR' | 'WORKER' | 'COMMAND_LINE'
        /** @description Filter by who made the change. At most 100 values; repeat the parameter or separate with commas. */
        actor_ids?: string[]
        /** @description Filter by the type of the record that was changed. */
        subject_type?: string
        /** @description Filter by the record that was changed. At most 100 values; repeat the parameter or separate with commas. */
        subject_ids?: string[]
        /**
         * @description Filter by what was done, such as `transfer.create`. At most 100 values; repeat the parameter or separate with commas.
         * @example [
         *       "transfer.create"
         *     ]
         */
        actions?: string[]
        /** @description Filter by outcome. At most 100 values; repeat the parameter or separate with commas. */
        outcomes?: ('DONE' | 'REFUSED')[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['AuditLogRecord'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  verifyAuditLog: {
    parameters: {
      query?: {
        /** @description Begin after this link (default: with the first). */
        after_position?: number
        /** @description The hash of that link, as it was known before. */
        after_hash?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /** @description Links that this request computed again. */
            links: number
            /** @description Their rows of the audit log; payments of a batch share one. */
            records: number
            /** @description The last link that is as it was written. Send it as `after_position` and `after_hash` to continue. */
            checked: {
              /** @description Its position. */
              position: number
              /** @description Its hash. */
              hash: string
            }
            /** @description Whether it is the last link of the chain. */
            is_complete: boolean
            /** @description The end of the chain. Kept elsewhere, it contradicts whoever rewrites the chain later. */
            head?: {
              /**
               * Format: uuid
               * @description Customer.
               * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
               */
              customer_id: string
              /** @description The position of the last link. */
              position: number
              /** @description Its hash. */
              hash: string
            }
            /** @description The first place that is not as it was written. Absent: there is none up to `checked`. */
            fault?: {
              /** @description What is not as it was written. */
              fault: string
              /** @description The link. */
              position?: number
              /** @description The record of the audit log. */
              record_id?: string
              /** @description Its action. */
              action?: string
              /** @description The records that were changed, or whose entries were. */
              subject_ids?: string[]
              /**
               * Format: date-time
               * @description When it was written.
               * @example 2026-01-31T09:30:00.123456Z
               */
              created_at?: string
            }
          }
        }
      }
    }
  }
  listApiCredentials: {
    parameters: {
      query?: {
        /** @description Filter by ids. At most 100 values; repeat the parameter or separate with commas. */
        ids?: string[]
        /** @description Filter by client ids, as ids does. At most 100 values; repeat the parameter or separate with commas. */
        client_ids?: string[]
        /** @description Filter by status; APPROVED by default. At most 100 values; repeat the parameter or separate with commas. */
        statuses?: ('APPROVED' | 'DELETED')[]
        /** @description created_at strictly before. */
        'created_at.lt'?: string
        /** @description created_at before or equal. */
        'created_at.lte'?: string
        /** @description created_at exactly equal. */
        'created_at.eq'?: string
        /** @description created_at after or equal. */
        'created_at.gte'?: string
        /** @description created_at strictly after. */
        'created_at.gt'?: string
        /** @description Sort key. */
        order_by?: 'CREATED_AT'
        /**
         * @description Page size.
         * @example 10
         */
        limit?: number
        /** @description Sort order. */
        order?: 'DESC' | 'ASC'
        /** @description `next_page_cursor` of the previous page. */
        page_cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            items: components['schemas']['ApiCredentials'][]
            /** @description Absent on the last page. */
            next_page_cursor?: string
          }
        }
      }
    }
  }
  rotateApiCredentials: {
    parameters: {
      query?: {
        /** @description The approval of this change, from the 403 `approval-required` of the same request before. */
        approval_id?: string
      }
      header?: never
      path: {
        /**
         * @description The API client.
         * @example 0192f3a4-0000-7000-8000-00000000000b
         */
        client_id: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description How long the previous secret is accepted. 0: no longer.
           * @default 86400
           */
          grace_seconds?: number
        }
      }
    }
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            /**
             * Format: uuid
             * @description The API client.
             * @example 0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f
             */
            client_id: string
            /** @description The new secret. It is not stored and not shown again. */
            client_secret: string
            credentials: components['schemas']['ApiCredentials']
          }
        }
      }
    }
  }
  deleteApiCredentials: {
    parameters: {
      query?: {
        /** @description The approval of this change, from the 403 `approval-required` of the same request before. */
        approval_id?: string
      }
      header?: never
      path: {
        /**
         * @description The API client.
         * @example 0192f3a4-0000-7000-8000-00000000000b
         */
        client_id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown
        }
        content: {
          'application/json': {
            credentials: components['schemas']['ApiCredentials']
          }
        }
      }
    }
  }
  'on-transfer-crypto-deposit-pending': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-crypto-deposit-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-crypto-deposit-failed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-crypto-withdrawal-pending': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-crypto-withdrawal-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-crypto-withdrawal-failed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-wire-deposit-pending': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-wire-deposit-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-wire-deposit-failed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-wire-withdrawal-pending': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-wire-withdrawal-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-wire-withdrawal-failed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-internal-transfer-debit-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-internal-transfer-credit-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-paxos-transfer-credit-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-transfer-paxos-transfer-debit-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['TransferStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-orchestration-processing': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['OrchestrationStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-orchestration-completed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['OrchestrationStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-orchestration-failed': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['OrchestrationStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-identity-approved': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['IdentitySummaryStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-identity-denied': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['IdentitySummaryStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-identity-disabled': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['IdentitySummaryStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-account-approved': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['AccountSummaryStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-account-denied': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['AccountSummaryStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-account-disabled': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['AccountSummaryStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-statement-generated': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['StatementStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-statement-paid': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['StatementStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-fiat-account-approved': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['FiatAccountStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-fiat-account-rejected': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['FiatAccountStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-crypto-destination-address-approved': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['CryptoDestinationAddressStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-crypto-destination-address-rejected': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['CryptoDestinationAddressStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-webhook-disabled': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['WebhookStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-approval-requested': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['ApprovalStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-approval-approved': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['ApprovalStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-approval-rejected': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['ApprovalStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
  'on-approval-expired': {
    parameters: {
      query?: never
      header: {
        /** @description The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen. */
        'webhook-id': string
        /** @description When the attempt is made: seconds since 1970. */
        'webhook-timestamp': string
        /** @description One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces. */
        'webhook-signature': string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['ThinEvent']
        'application/cloudevents+json': {
          /**
           * Format: uuid
           * @description Event id.
           */
          id: string
          /** @description Type of the event. Ignore a type that you do not know. */
          type: string
          /** @description Who sends it: BURSAR_WEBHOOK_SOURCE. */
          source: string
          /**
           * Format: date-time
           * @description When the status changed.
           */
          time: string
          /**
           * @description Always event.
           * @enum {string}
           */
          object: 'event'
          /** @description Whether it is a test: the records that it names do not exist. */
          is_test: boolean
          /**
           * @description Version of CloudEvents.
           * @enum {string}
           */
          specversion: '1.0'
          /**
           * Format: uuid
           * @description The record whose status changed.
           */
          subject: string
          /**
           * @description Media type of data.
           * @enum {string}
           */
          datacontenttype: 'application/json'
          /**
           * Format: date-time
           * @description The same as time.
           */
          timestamp: string
          /** @description Type of the object in data. */
          object_type: string
          data: components['schemas']['ApprovalStatusChange']
        }
      }
    }
    responses: {
      /** @description The webhook is DISABLED at once. */
      410: {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
      /** @description The event is delivered. Any other answer is retried. */
      '2XX': {
        headers: {
          [name: string]: unknown
        }
        content?: never
      }
    }
  }
}
