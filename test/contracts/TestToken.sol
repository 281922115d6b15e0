// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// An ERC-20 token for the tests, with what issuers' tokens have besides: blocked addresses, a pause, a fee, and no answer.
contract TestToken {
    uint8 public immutable decimals;
    bool public paused;
    /// Whether a transfer returns nothing, as that of the first tokens.
    bool public silent;
    /// What a transfer burns, in percent.
    uint256 public feePercent;
    mapping(address => uint256) public balanceOf;
    mapping(address => bool) public blocked;

    event Transfer(address indexed from, address indexed to, uint256 amount);

    constructor(uint8 decimals_) {
        decimals = decimals_;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        require(!paused, "paused");
        require(!blocked[msg.sender] && !blocked[to], "blocked");
        balanceOf[msg.sender] -= amount;
        uint256 fee = (amount * feePercent) / 100;
        balanceOf[to] += amount - fee;
        emit Transfer(msg.sender, to, amount - fee);
        if (silent) {
            assembly {
                return(0, 0)
            }
        }
        return true;
    }

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function setBlocked(address who, bool value) external {
        blocked[who] = value;
    }

    function setFeePercent(uint256 value) external {
        feePercent = value;
    }

    function setPaused(bool value) external {
        paused = value;
    }

    function setSilent(bool value) external {
        silent = value;
    }
}
