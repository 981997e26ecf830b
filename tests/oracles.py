"""Literal, slow transformers to compare with: whole matrices, whole masks, one token and one expert at a time."""

import math

import torch


def sees(segments: list[int], positions: list[int], block: int) -> torch.Tensor:
    """The mask [T, T] of one row, by definition. Segment 0 is the document, or everything with exact attention.

    A token sees the document and its own segment; in a block-causal model only blocks up to its own.
    """
    count = len(segments)
    mask = torch.zeros(count, count, dtype=torch.bool)
    for i in range(count):
        for j in range(count):
            near = segments[j] in (0, segments[i])
            mask[i, j] = near and (block == 0 or positions[j] // block <= positions[i] // block)
    return mask


def hugging_logits(model, tokens, positions, mask) -> torch.Tensor:
    """Logits [T, V] of a causal model of transformers under a mask of our own."""
    bias = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    with torch.no_grad():
        return model(
            input_ids=torch.tensor([tokens]), position_ids=torch.tensor([positions]), attention_mask=bias[None, None],
            use_cache=False,
        ).logits[0]  # fmt: skip


def norm(x, weight, eps):
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + eps) * weight


def turn(x, positions, theta, rotary):
    """x [T, H, d], dimension by dimension."""
    out = x.clone()
    for t, position in enumerate(positions):
        for i in range(rotary // 2):
            angle = position * theta ** (-2 * i / rotary)
            a, b = x[t, :, i], x[t, :, i + rotary // 2]
            out[t, :, i] = a * math.cos(angle) - b * math.sin(angle)
            out[t, :, i + rotary // 2] = b * math.cos(angle) + a * math.sin(angle)
    return out


def attention(q, k, v, mask):
    repeats = q.shape[1] // k.shape[1]
    heads = []
    for head in range(q.shape[1]):
        scores = q[:, head] @ k[:, head // repeats].T / math.sqrt(q.shape[-1])
        heads.append(scores.masked_fill(~mask, -math.inf).softmax(-1) @ v[:, head // repeats])
    return torch.stack(heads, dim=1).flatten(1)


def mlp(state, at, x):
    gate, up, down = (state[f"{at}{part}_proj.weight"] for part in ("gate", "up", "down"))
    return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


def sigmoid_experts(state, at, x, config):
    """LLaDA2: sigmoid, bias for the choice only, groups by their two best, weights normalised and scaled."""
    size = config["num_experts"] // config["n_group"]
    out = []
    for token in x:
        scores = torch.sigmoid(state[at + "gate.weight"] @ token)
        choice = (scores + state[at + "gate.expert_bias"]).tolist()
        groups = [sum(sorted(choice[g * size : (g + 1) * size])[-2:]) for g in range(config["n_group"])]
        kept = sorted(range(len(groups)), key=lambda g: -groups[g])[: config["topk_group"]]
        allowed = [e for e in range(config["num_experts"]) if e // size in kept]
        chosen = sorted(allowed, key=lambda e: -choice[e])[: config["num_experts_per_tok"]]
        total = sum(scores[e] for e in chosen)
        mixed = sum(scores[e] / total * config["routed_scaling_factor"] * mlp(state, f"{at}experts.{e}.", token)
                    for e in chosen)  # fmt: skip
        out.append(mixed + mlp(state, at + "shared_experts.", token))
    return torch.stack(out)


def softmax_experts(state, at, x, config):
    """LLaDA-MoE: softmax over all experts, the best ones with their weight as it is."""
    out = []
    for token in x:
        scores = torch.softmax(state[at + "gate.weight"] @ token, dim=0)
        chosen = scores.argsort(descending=True)[: config["num_experts_per_tok"]].tolist()
        out.append(sum(scores[e] * mlp(state, f"{at}experts.{e}.", token) for e in chosen))
    return torch.stack(out)


def llada2_logits(state, config, tokens, positions, mask):
    heads, keys, width = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    rotary, eps = int(width * config["partial_rotary_factor"]), config["rms_norm_eps"]
    x = state["model.word_embeddings.weight"][tokens]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        normed = norm(x, state[at + "input_layernorm.weight"], eps)
        both = (normed @ state[at + "attention.query_key_value.weight"].T).view(len(tokens), heads + 2 * keys, width)
        q, k, v = both[:, :heads], both[:, heads : heads + keys], both[:, heads + keys :]
        q = turn(norm(q, state[at + "attention.query_layernorm.weight"], eps), positions, config["rope_theta"], rotary)
        k = turn(norm(k, state[at + "attention.key_layernorm.weight"], eps), positions, config["rope_theta"], rotary)
        x = x + attention(q, k, v, mask) @ state[at + "attention.dense.weight"].T
        normed = norm(x, state[at + "post_attention_layernorm.weight"], eps)
        dense = layer < config["first_k_dense_replace"]
        x = x + (mlp(state, at + "mlp.", normed) if dense else sigmoid_experts(state, at + "mlp.", normed, config))
    return norm(x, state["model.norm.weight"], eps) @ state["lm_head.weight"].T


def llada_moe_logits(state, config, tokens, positions, mask):
    heads, eps = config["num_attention_heads"], config["rms_norm_eps"]
    x = state["model.embed_tokens.weight"][tokens]
    width = x.shape[1] // heads
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        normed = norm(x, state[at + "input_layernorm.weight"], eps)
        q, k, v = ((normed @ state[at + f"self_attn.{p}_proj.weight"].T).view(-1, heads, width) for p in "qkv")
        q = turn(norm(q, state[at + "self_attn.q_norm.weight"], eps), positions, config["rope_theta"], width)
        k = turn(norm(k, state[at + "self_attn.k_norm.weight"], eps), positions, config["rope_theta"], width)
        x = x + attention(q, k, v, mask) @ state[at + "self_attn.o_proj.weight"].T
        normed = norm(x, state[at + "post_attention_layernorm.weight"], eps)
        x = x + softmax_experts(state, at + "mlp.", normed, config)
    return norm(x, state["model.norm.weight"], eps) @ state["lm_head.weight"].T
