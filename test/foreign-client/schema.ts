/** Generated from openapi.yaml by openapi-typescript; `--update` of foreign-client.db.test.ts writes it. */
export interface paths {
  '/v2/profiles': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get: {
      parameters: {
        query?: {
          order_by?: 'CREATED_AT'
          order?: 'DESC' | 'ASC'
          limit?: number
        }
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: never
      responses: {
        200: components['responses']['Profiles']
      }
    }
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: components['requestBodies']['Profile']
      responses: {
        200: components['responses']['Profile']
      }
    }
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
      path: {
        id: components['parameters']['id']
      }
      cookie?: never
    }
    get?: never
    put: {
      parameters: {
        query?: never
        header?: never
        path: {
          id: components['parameters']['id']
        }
        cookie?: never
      }
      requestBody?: components['requestBodies']['Profile']
      responses: {
        200: components['responses']['Profile']
      }
    }
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
    get: {
      parameters: {
        query?: {
          summary_status?: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
          identity_type?: 'PERSON' | 'INSTITUTION'
          include_details?: boolean
          include_institution_members?: boolean
          'updated_at.gte'?: string
          order_by?: 'CREATED_AT'
        }
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: never
      responses: {
        200: components['responses']['Identities']
      }
    }
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            ref_id: string
            metadata?: components['schemas']['Metadata']
            person_details?: components['schemas']['PersonDetails']
            institution_details?: components['schemas']['InstitutionDetails']
            institution_members?: components['schemas']['NewInstitutionMember'][]
            tax_details?: components['schemas']['TaxDetail'][]
            customer_due_diligence?: {
              [key: string]: unknown
            }
            is_merchant?: boolean
          }
        }
      }
      responses: {
        200: components['responses']['Identity']
      }
    }
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
      path: {
        id: components['parameters']['id']
      }
      cookie?: never
    }
    get: {
      parameters: {
        query?: never
        header?: never
        path: {
          id: components['parameters']['id']
        }
        cookie?: never
      }
      requestBody?: never
      responses: {
        200: components['responses']['Identity']
      }
    }
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/identity/identities/{id}/sandbox-status': {
    parameters: {
      query?: never
      header?: never
      path: {
        id: components['parameters']['id']
      }
      cookie?: never
    }
    get?: never
    put: {
      parameters: {
        query?: never
        header?: never
        path: {
          id: components['parameters']['id']
        }
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            id_verification_status?: components['schemas']['VerificationStatus']
            sanctions_verification_status?: components['schemas']['VerificationStatus']
            document_verification_status?: components['schemas']['VerificationStatus']
            additional_screening_status?: components['schemas']['VerificationStatus']
            user_disabled?: {
              disabled?: boolean
            }
            admin_disabled?: {
              disabled?: boolean
            }
          }
        }
      }
      responses: {
        200: components['responses']['Empty']
      }
    }
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
    get: {
      parameters: {
        query?: {
          identity_id?: string
          'updated_at.lt'?: string
          order_by?: 'CREATED_AT'
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
            }
          }
        }
      }
    }
    put: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            set_user_disabled?: boolean
            account: {
              id: string
              description?: string
              metadata?: components['schemas']['Metadata']
            }
          }
        }
      }
      responses: {
        200: components['responses']['Account']
      }
    }
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            create_profile?: boolean
            account: {
              identity_id: string
              ref_id?: string
              /** @enum {unknown} */
              type?: 'BROKERAGE' | 'TRADITIONAL_IRA' | 'ROTH_IRA' | 'SEP_IRA' | 'FINANCIAL_ADVISOR'
              description?: string
              members?: {
                identity_id: string
                roles?: components['schemas']['AccountRole'][]
              }[]
            }
          }
        }
      }
      responses: {
        200: components['responses']['Account']
      }
    }
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
    get: {
      parameters: {
        query?: {
          networks?: components['schemas']['Network'][]
          identity_ids?: string[]
          order_by?: 'CREATED_AT'
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
            }
          }
        }
      }
    }
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            profile_id: string
            crypto_network: components['schemas']['Network']
            identity_id?: string
            account_id?: string
            ref_id?: string
            /** @enum {unknown} */
            conversion_target_asset?: 'NO_CONVERSION' | 'USD'
            metadata?: components['schemas']['Metadata']
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
    delete?: never
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
    get?: never
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            profile_id: string
            /** @enum {unknown} */
            fiat_network: 'WIRE'
            /** @enum {unknown} */
            routing_number_type?: 'ABA' | 'SWIFT'
            identity_id?: string
            ref_id?: string
            metadata?: components['schemas']['Metadata']
          }
        }
      }
      responses: {
        200: components['responses']['Instructions']
      }
    }
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
      path: {
        id: components['parameters']['id']
      }
      cookie?: never
    }
    get: {
      parameters: {
        query?: never
        header?: never
        path: {
          id: components['parameters']['id']
        }
        cookie?: never
      }
      requestBody?: never
      responses: {
        200: components['responses']['Instructions']
      }
    }
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
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            amount: components['schemas']['Amount']
            /** @enum {unknown} */
            asset: 'USD'
            memo_id: string
            fiat_network_instructions: {
              [key: string]: unknown
            }
            fiat_account_owner?: {
              [key: string]: unknown
            }
          }
        }
      }
      responses: {
        200: components['responses']['Empty']
      }
    }
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
      path: {
        id: components['parameters']['id']
      }
      cookie?: never
    }
    get?: never
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path: {
          id: components['parameters']['id']
        }
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            asset: string
            amount: components['schemas']['Amount']
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
              activity_id?: string
            }
          }
        }
      }
    }
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
    get: {
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
              items: components['schemas']['FiatAccount'][]
            }
          }
        }
      }
    }
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            fiat_account_owner: {
              [key: string]: unknown
            }
            fiat_network_instructions: {
              [key: string]: unknown
            }
            ref_id?: string
            identity_id?: string
          }
        }
      }
      responses: {
        200: components['responses']['FiatAccount']
      }
    }
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
      path: {
        id: components['parameters']['id']
      }
      cookie?: never
    }
    get: {
      parameters: {
        query?: never
        header?: never
        path: {
          id: components['parameters']['id']
        }
        cookie?: never
      }
      requestBody?: never
      responses: {
        200: components['responses']['FiatAccount']
      }
    }
    put?: never
    post?: never
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
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            profile_id: string
            asset: string
            fiat_account_id: string
            amount?: components['schemas']['Amount']
            ref_id?: string
            memo?: string
          }
        }
      }
      responses: {
        200: components['responses']['Transfer']
      }
    }
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
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            asset: string
            crypto_network: components['schemas']['Network']
            destination_address: string
            amount?: components['schemas']['Amount']
            total?: components['schemas']['Amount']
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
              id: string
              fee: components['schemas']['Amount']
              asset: string
              /** Format: date-time */
              expires_at: string
              destination_address: string
              crypto_network: components['schemas']['Network']
            }
          }
        }
      }
    }
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  '/v2/transfer/crypto-withdrawals': {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    get?: never
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            profile_id: string
            asset: string
            crypto_network: components['schemas']['Network']
            destination_address: string
            amount?: components['schemas']['Amount']
            total?: components['schemas']['Amount']
            ref_id?: string
            fee_id?: string
            identity_id?: string
            account_id?: string
            balance_asset?: string
            beneficiary?: {
              [key: string]: unknown
            }
            memo?: string
            metadata?: components['schemas']['Metadata']
          }
        }
      }
      responses: {
        200: components['responses']['Transfer']
      }
    }
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
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            asset: string
            amount: components['schemas']['Amount']
            from_profile_id: string
            to_profile_id: string
            from_identity_id?: string
            from_account_id?: string
            to_identity_id?: string
            to_account_id?: string
            ref_id?: string
            memo?: string
            metadata?: components['schemas']['Metadata']
            recipient_metadata?: components['schemas']['Metadata']
          }
        }
      }
      responses: {
        200: components['responses']['Transfer']
      }
    }
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
    get: {
      parameters: {
        query?: {
          group_ids?: string[]
          type?: string[]
          statuses?: ('PENDING' | 'COMPLETED' | 'FAILED')[]
          order_by?: 'CREATED_AT' | 'UPDATED_AT'
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
              next_page_cursor?: string
            }
          }
        }
      }
    }
    put?: never
    post?: never
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
    get: {
      parameters: {
        query?: {
          profile_id?: string
          status?: components['schemas']['RuleStatus'][]
          source_asset?: string
          destination_asset?: string
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
              rules: components['schemas']['Rule'][]
            }
          }
        }
      }
    }
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            ref_id: string
            profile_id: string
            identity_id?: string
            account_id?: string
            source_asset: string
            destination_asset: string
            nickname?: string
            source: {
              [key: string]: unknown
            }
            destination?: {
              [key: string]: unknown
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
            'application/json': {
              rule: components['schemas']['Rule']
            }
          }
        }
      }
    }
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
    get: {
      parameters: {
        query?: {
          ref_id?: string[]
          orchestration_rule_id?: string[]
          status?: ('PENDING' | 'REJECTED' | 'PROCESSING' | 'COMPLETED' | 'FAILED')[]
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
              orchestrations: components['schemas']['Orchestration'][]
              items: components['schemas']['Orchestration'][]
            }
          }
        }
      }
    }
    put?: never
    post: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            ref_id: string
            profile_id?: string
            identity_id?: string
            account_id?: string
            source_asset: string
            destination_asset: string
            source_amount: components['schemas']['Amount']
            source?: {
              profile?: {
                profile_id?: string
              }
            }
            destination?: {
              fiat?: {
                bank_account_id?: string
                memo?: string
              }
              crypto?: {
                address_id?: string
                address?: string
                network?: components['schemas']['Network']
              }
              profile?: {
                profile_id?: string
              }
            }
            metadata?: components['schemas']['Metadata']
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
    get: {
      parameters: {
        query: {
          customer_id: string
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
            }
          }
        }
      }
    }
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
    get: {
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
              markets: {
                market: string
                base_asset: string
                quote_asset: string
              }[]
            }
          }
        }
      }
    }
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
      path: {
        market: string
      }
      cookie?: never
    }
    get: {
      parameters: {
        query?: {
          increment?: 'ONE_MINUTE' | 'ONE_HOUR' | 'ONE_DAY'
          'range.begin'?: string
        }
        header?: never
        path: {
          market: string
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
              items: {
                /** Format: date-time */
                timestamp: string
                open: components['schemas']['Amount']
                high: components['schemas']['Amount']
                low: components['schemas']['Amount']
                close: components['schemas']['Amount']
              }[]
            }
          }
        }
      }
    }
    put?: never
    post?: never
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
    put: {
      parameters: {
        query?: never
        header?: never
        path?: never
        cookie?: never
      }
      requestBody?: {
        content: {
          'application/json': {
            id?: string
            crypto_network?: components['schemas']['Network']
            address?: string
            identity_id?: string
            nickname?: string
            bookmarked_status?: boolean
            travelrule_metadata?: {
              [key: string]: unknown
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
            'application/json': {
              address: components['schemas']['BookedAddress']
            }
          }
        }
      }
    }
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
    get: {
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
              items: components['schemas']['BookedAddress'][]
            }
          }
        }
      }
    }
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
    get: {
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
              items: {
                id: string
                client_id: string
                customer_id: string
                client_scope_strings: string[]
                /** @enum {unknown} */
                status: 'APPROVED' | 'DELETED'
                /** Format: date-time */
                created_at: string
                /** Format: date-time */
                updated_at: string
              }[]
            }
          }
        }
      }
    }
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
}
export type webhooks = Record<string, never>
export interface components {
  schemas: {
    Amount: string
    Metadata: {
      [key: string]: string
    }
    /** @enum {unknown} */
    Network:
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
    /** @enum {unknown} */
    VerificationStatus: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED'
    /** @enum {unknown} */
    AccountRole: 'BENEFICIAL_OWNER' | 'AUTHORIZED_USER' | 'FINANCIAL_ADVISOR'
    /** @enum {unknown} */
    RuleStatus: 'ACTIVE' | 'DELETED'
    PersonDetails: {
      first_name: string
      last_name: string
      date_of_birth?: string
    } & {
      [key: string]: unknown
    }
    InstitutionDetails: {
      name: string
      email?: string
    } & {
      [key: string]: unknown
    }
    TaxDetail: {
      tax_payer_id?: string
      tax_payer_country?: string
    }
    NewInstitutionMember: {
      identity_id: string
      roles: string[]
    }
    Profile: {
      id: string
      nickname: string
      description?: string
      /** @enum {unknown} */
      type: 'NORMAL' | 'DEFAULT'
    }
    Identity: {
      id: string
      ref_id: string
      /** @enum {unknown} */
      summary_status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
      user_disabled: boolean
      admin_disabled: boolean
      is_merchant?: boolean
      tax_details?: components['schemas']['TaxDetail'][]
      customer_due_diligence?: {
        [key: string]: unknown
      }
      institution_members?: {
        id: string
        identity_id: string
        roles: string[]
      }[]
      /** Format: date-time */
      created_at: string
      /** Format: date-time */
      updated_at: string
    }
    Account: {
      id: string
      identity_id: string
      ref_id?: string
      description?: string
      user_disabled?: boolean
      admin_disabled?: boolean
      /** @enum {unknown} */
      summary_status: 'PENDING' | 'ERROR' | 'APPROVED' | 'DENIED' | 'DISABLED'
      profile_id?: string
      members?: {
        id: string
        identity_id: string
        type?: string
        roles: components['schemas']['AccountRole'][]
      }[]
      /** Format: date-time */
      created_at: string
      /** Format: date-time */
      updated_at: string
    }
    DepositAddress: {
      id: string
      profile_id: string
      /** Format: uuid */
      identity_id: string
      address: string
      crypto_network: components['schemas']['Network']
      compatible_crypto_networks?: components['schemas']['Network'][]
      /** Format: date-time */
      created_at: string
    }
    BookedAddress: {
      id: string
      crypto_network: components['schemas']['Network']
      address: string
      nickname: string
      /** @enum {unknown} */
      status: 'PENDING' | 'APPROVED' | 'REJECTED'
      bookmarked: boolean
      /** Format: date-time */
      created_at: string
    }
    Instructions: {
      id: string
      memo_id: string
      /** @enum {unknown} */
      status: 'VALID' | 'DEPRECATED'
      /** Format: uuid */
      identity_id: string
      fiat_network_instructions: {
        [key: string]: unknown
      }
    }
    FiatAccount: {
      id: string
      /** @enum {unknown} */
      status: 'PENDING' | 'APPROVED' | 'REJECTED'
      fiat_account_owner: {
        [key: string]: unknown
      }
      fiat_network_instructions: {
        [key: string]: unknown
      }
    }
    Transfer: {
      id: string
      customer_id: string
      profile_id: string
      identity_id?: string
      account_id?: string
      ref_id?: string
      group_id?: string
      amount: components['schemas']['Amount']
      total: components['schemas']['Amount']
      fee: components['schemas']['Amount']
      asset: string
      balance_asset?: string
      /** @enum {unknown} */
      direction: 'CREDIT' | 'DEBIT'
      /** @enum {unknown} */
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
      /** @enum {unknown} */
      status: 'PENDING' | 'COMPLETED' | 'FAILED'
      metadata?: components['schemas']['Metadata']
      memo?: string
      destination_address?: string
      crypto_network?: components['schemas']['Network']
      /** Format: date-time */
      created_at: string
      /** Format: date-time */
      updated_at: string
    }
    Rule: {
      id: string
      ref_id: string
      profile_id: string
      identity_id?: string
      account_id?: string
      status: components['schemas']['RuleStatus']
      source_asset: string
      destination_asset: string
      source: {
        fiat?: {
          deposit_instructions_id?: string
          memo_id?: string
        }
      }
    }
    Orchestration: {
      id: string
      profile_id: string
      identity_id?: string
      customer_id: string
      ref_id: string
      /** @enum {unknown} */
      status?: 'PENDING' | 'REJECTED' | 'PROCESSING' | 'COMPLETED' | 'FAILED'
      source_asset: string
      destination_asset: string
      source_amount: components['schemas']['Amount']
      source_transfer?: {
        transfer_id: string
        /** @enum {unknown} */
        status: 'PENDING' | 'COMPLETED' | 'FAILED'
      }
      destination_transfer?: {
        transfer_id: string
        /** @enum {unknown} */
        status: 'PENDING' | 'COMPLETED' | 'FAILED'
      }
      source: {
        [key: string]: unknown
      }
      destination: {
        fiat?: {
          bank_account_id?: string
        }
      }
      orchestration_rule_id?: string
      /** Format: date-time */
      created_at: string
      /** Format: date-time */
      updated_at: string
    }
    Statement: {
      id: string
      ref_id: string
      customer_id: string
      /** @enum {unknown} */
      type: 'STATEMENT_TYPE_USDG_REWARD'
      /** @enum {unknown} */
      product: 'USDG_REWARDS'
      /** @enum {unknown} */
      status:
        | 'STATEMENT_STATUS_UNSPECIFIED'
        | 'STATEMENT_STATUS_INITIATED'
        | 'STATEMENT_STATUS_GENERATED'
        | 'STATEMENT_STATUS_PAID'
      statement_group_id?: string
      version?: number | string
      files?: unknown[]
      statement_balances?: Record<string, never>[]
      /** Format: date-time */
      period_start: string
      /** Format: date-time */
      period_end: string
    }
  }
  responses: {
    /** @description Success */
    Empty: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': Record<string, never>
      }
    }
    /** @description Success */
    Profile: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': components['schemas']['Profile']
      }
    }
    /** @description Success */
    Profiles: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': {
          items: components['schemas']['Profile'][]
          next_page_cursor?: string
        }
      }
    }
    /** @description Success */
    Identity: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': components['schemas']['Identity']
      }
    }
    /** @description Success */
    Identities: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': {
          items: components['schemas']['Identity'][]
        }
      }
    }
    /** @description Success */
    Account: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': components['schemas']['Account']
      }
    }
    /** @description Success */
    Instructions: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': components['schemas']['Instructions']
      }
    }
    /** @description Success */
    FiatAccount: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': components['schemas']['FiatAccount']
      }
    }
    /** @description Success */
    Transfer: {
      headers: {
        [name: string]: unknown
      }
      content: {
        'application/json': components['schemas']['Transfer']
      }
    }
  }
  parameters: {
    id: string
  }
  requestBodies: {
    Profile: {
      content: {
        'application/json': {
          nickname: string
          description?: string
        }
      }
    }
  }
  headers: never
  pathItems: never
}
export type $defs = Record<string, never>
export type operations = Record<string, never>
