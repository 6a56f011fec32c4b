// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/nl_request.hpp"

#include <algorithm>

namespace vfmgr {

NlRequest::NlRequest(std::uint16_t type, int flags)
    : type_(type), flags_(static_cast<std::uint16_t>(flags | NLM_F_REQUEST | NLM_F_ACK)) {
    append(bytes_of(nlmsghdr{}));
}

NlRequest& NlRequest::put_text(int type, std::string_view text) {
    std::string const terminated(text);
    return put_bytes(type, std::as_bytes(std::span(terminated.c_str(), terminated.size() + 1)));
}

NlRequest& NlRequest::put_ip(int type, IpAddress const& address) {
    return put_bytes(type, std::as_bytes(std::span(address.octets).first(address.bits() / 8)));
}

void NlRequest::reserve(std::size_t octets) {
    memory_.resize(std::max(octets, memory_.size()), boost::container::default_init);
}

ByteView NlRequest::numbered(std::uint32_t sequence, int more_flags) {
    nlmsghdr const header{static_cast<std::uint32_t>(size_), type_,
                          static_cast<std::uint16_t>(flags_ | more_flags), sequence, 0};
    std::memcpy(memory_.data(), &header, sizeof header);
    return whole();
}

void NlRequest::set_length(std::size_t at) {
    auto const length = size_ - at;
    complete_ = complete_ && length <= UINT16_MAX;
    auto const stored = static_cast<std::uint16_t>(length);
    std::memcpy(memory_.data() + at + offsetof(nlattr, nla_len), &stored, sizeof stored);
}

}  // namespace vfmgr
