"""Every mechanism in words: one table of templates, so that a translation replaces one table.

`says` holds sentences that are added when the hypothesis knows the facts named in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Entry:
    """Family, title, what it means, sentences with facts, and what to check on the device."""

    family: str
    title: str
    means: str
    says: tuple[str, ...]
    check: tuple[str, ...]


_TABLE: dict[str, Entry] = {
    # precision
    "tf32_gemm": Entry(
        "precision",
        "Matrix product with operands cut to {bits} bits",
        "The product behaves like one whose operands were rounded to the significand of TF32 or "
        "HF32 before multiplying; its output still has the bits of float32.",
        ("Rounding both operands to {format} reproduces the output.",),
        (
            "Compare the settings that allow TF32 or HF32 (matmul precision, cube mode) on both "
            "sides.",
            "Rerun the product with reduced-precision math switched off.",
        ),
    ),
    "lowprec_compute": Entry(
        "precision",
        "Operator executed in {format}",
        "The run is wider than this operator computes: its values lie on the grid of a narrower "
        "format.",
        ("Computing it in {format} reproduces the output.",),
        (
            "Look for an autocast region, a fusion or a graph pass that lowers this operator.",
            "Force the operator to the run's format and dump again.",
        ),
    ),
    "lowprec_accum": Entry(
        "precision",
        "Matrix product accumulates in {format}",
        "The error is that of an accumulator rounded while summing, not of rounded operands: it "
        "grows with the length of the reduction.",
        (
            "Read as an accumulator the error has {bits:.1f} significand bits.",
            "Rounding the running sum every {block} terms reproduces the output.",
        ),
        (
            "Check the kernel's accumulator type and whether reduced-precision reduction is "
            "allowed.",
            "Repeat with a longer reduction: the error must grow like its square root.",
        ),
    ),
    "splitk_16bit": Entry(
        "precision",
        "Partial sums of a split reduction stored in {format}",
        "The reduction is cut into pieces whose sums are kept in 16 bits before they are added: "
        "errors are large where the pieces cancel.",
        ("Rounding the sums of {splits} pieces reproduces the output.",),
        (
            "Look at the workspace type of the split-K kernel.",
            "Force a kernel without split-K for this shape.",
        ),
    ),
    "rope_phase_16bit": Entry(
        "precision",
        "Rotary phase computed in {format}",
        "Position times inverse frequency is rounded to 16 bits before the cosine: the error is "
        "zero at position 0 and grows with position.",
        ("Rounded: {rounded}.",),
        (
            "Check that inverse frequencies and positions stay in float32, also under autocast "
            "or after casting the whole module.",
        ),
    ),
    "softmax_16bit": Entry(
        "precision",
        "Softmax computed in {format}",
        "Exponentials or their sum are kept in 16 bits.",
        (),
        ("Check the softmax's internal type; request float32 and dump again.",),
    ),
    "norm_stat_16bit": Entry(
        "precision",
        "Norm statistic computed in {format}",
        "Every row is off by a factor of its own that is one or a few roundings of a 16-bit "
        "variance.",
        ("{rows} rows carry such a factor.",),
        ("Check that the norm's mean of squares is taken in float32.",),
    ),
    "lmhead_16bit": Entry(
        "precision",
        "Logits rounded to {format}",
        "Only the last product's output lies on a 16-bit grid.",
        (),
        ("Check for a cast after the output head; keep the logits in float32.",),
    ),
    # constant
    "norm_1p_16bit": Entry(
        "constant",
        "1 + weight of the norm rounded to {format}",
        "Channels whose 1 + weight is not representable are off by a constant ratio, all others "
        "are right.",
        (),
        ("Add the one in float32, as the reference does.",),
    ),
    "const_rounded": Entry(
        "constant",
        "A constant rounded to {format}",
        "All values are off by one factor close to 1: that of a rounded constant.",
        ("{constant:.7g} was used as {rounded:.7g}.",),
        ("Find where the scalar becomes a tensor of the model's own format.",),
    ),
    # range
    "fp16_overflow": Entry(
        "range",
        "Values beyond the largest {format} became infinite",
        "Infinities stand exactly where the expected value exceeds the format's range.",
        ("{count} elements exceed {limit:g}.",),
        (
            "Look at the channel that grows: scale it, or keep this operator in a wider format.",
            "Check that both sides use the same overflow mode.",
        ),
    ),
    "saturation_clamp": Entry(
        "range",
        "Values clamped at {limit:.6g}",
        "One side stops at a limit which the expected values exceed.",
        ("{count} elements are held at the limit.",),
        ("Find the clamp or saturating conversion, or the scale that is too small.",),
    ),
    "flush_to_zero": Entry(
        "range",
        "Small values flushed to zero",
        "Every expected value below a threshold came out as exactly zero, every larger one is "
        "right.",
        ("{count} values below {threshold:.3g} are zero.",),
        ("Compare the flush-to-zero mode and the treatment of subnormals.",),
    ),
    "mask_leak": Entry(
        "range",
        "Masked positions keep weight",
        "The mask's constant is not low enough: masked keys take part in the softmax.",
        ("A constant of {constant:.4g} reproduces the output.",),
        ("Use minus infinity or the format's lowest value, applied after scaling.",),
    ),
    "nan_masked_rows": Entry(
        "range",
        "Fully masked rows give NaN",
        "Rows without any allowed key are NaN on one side; the other gives zeros.",
        ("{rows} rows are NaN.",),
        ("Agree on the convention for fully masked rows; guard the division by the sum.",),
    ),
    "eps_underflow": Entry(
        "range",
        "Norm epsilon underflows",
        "Rows of zero variance are divided by zero: epsilon does not survive its format.",
        ("{rows} rows are not finite.",),
        ("Check in which format epsilon is added.",),
    ),
    "variance_overflow": Entry(
        "range",
        "Norm variance overflows",
        "The sum of squares exceeds the range of 16 bits, the reciprocal becomes 0 and the row "
        "vanishes.",
        ("{rows} rows are zero; their sums of squares begin at {least:.4g}.",),
        ("Take the mean of squares in float32.",),
    ),
    # semantic
    "act_variant": Entry(
        "semantic",
        "Another activation formula",
        "The error is a function of the input value alone.",
        ("The output is {variant} where {expected_variant} was expected.",),
        ("Compare the activation's name and its approximation setting.",),
    ),
    "attn_scale": Entry(
        "semantic",
        "Wrong attention scale",
        "Scores are off by one factor.",
        ("The scale is {scale:.5g} instead of {scale_reference:.5g}.", "The ratio is {meaning}."),
        ("Check the head width from which the scale is derived, and padding of heads.",),
    ),
    "norm_eps": Entry(
        "semantic",
        "Wrong norm epsilon",
        "Rows of low variance are off, the more the lower.",
        ("Epsilon is {eps:.3g} instead of {eps_reference:.3g}.",),
        ("Compare the configuration's epsilon with the kernel's default.",),
    ),
    "norm_weight_plus1": Entry(
        "semantic",
        "Norm weight off by exactly one",
        "One side multiplies by w, the other by 1 + w.",
        ("The one sits in the {place}.",),
        ("Check the checkpoint conversion of zero-centred norm weights.",),
    ),
    "norm_mean_subtract": Entry(
        "semantic",
        "Mean subtracted in the norm",
        "The output is that of LayerNorm where RMSNorm was expected, or the reverse.",
        (),
        ("Check which norm kernel was chosen.",),
    ),
    "dropout_active": Entry(
        "semantic",
        "Dropout active",
        "A share of the values is dropped and the rest enlarged by 1 / (1 − p).",
        ("p = {probability:.3g}.",),
        ("Put the model into evaluation mode; check the probability handed to the kernel.",),
    ),
    "softcap_dropped": Entry(
        "semantic",
        "Soft cap missing or different",
        "Large scores pass a bound which the other side keeps.",
        ("The cap concerned is {cap:.4g}.",),
        ("Check that the attention kernel supports the cap and receives it.",),
    ),
    "rope_scaling": Entry(
        "semantic",
        "Rotary output scaled",
        "Queries or keys after the rotation are off by one factor.",
        ("The factor is {factor:.5g}.", "It is {meaning}."),
        ("Check the attention factor of the rotary scaling (YaRN) and where it is applied.",),
    ),
    "lora_scale": Entry(
        "semantic",
        "LoRA delta scaled wrongly",
        "The base output is right; what the adapter adds is off by a factor.",
        ("The scale is {scale:.5g} instead of {scale_reference:.5g}.",),
        ("Compare alpha, rank and rank-stabilised scaling.",),
    ),
    "lmhead_untied": Entry(
        "semantic",
        "Output head weight not tied or not loaded",
        "The hidden states agree; the head multiplies them with other values.",
        ("Cosine between the two weights: {cosine:.3g}.",),
        ("Check the loader's report of missing keys and the tying of embeddings.",),
    ),
    "padding_idx_zero": Entry(
        "semantic",
        "Embedding row of one token is zero",
        "All differences belong to one token id, whose vector is zero on one side.",
        ("Token {token}.",),
        ("Check the padding index given to the embedding.",),
    ),
    "router_norm": Entry(
        "semantic",
        "Router weights not renormalised",
        "The same experts are chosen; each token's weights differ by one factor, their sum.",
        (),
        ("Check the setting that normalises the top-k probabilities.",),
    ),
    "gate_up_swap": Entry(
        "semantic",
        "Gate and up halves exchanged",
        "The activation is applied to the other half.",
        (),
        ("Check the order in which the two weights are concatenated.",),
    ),
    "residual_wrong": Entry(
        "semantic",
        "Residual missing or taken from the wrong place",
        "The sum has another addend than its inputs say.",
        ("It equals {variant}.",),
        ("Check whether the residual is kept before or after the norm, and in-place updates.",),
    ),
    # layout
    "rope_interleave": Entry(
        "layout",
        "Other rotary layout",
        "Pairs are adjacent on one side and half a head apart on the other: row norms agree, "
        "position 0 agrees.",
        ("The candidate rotates {layout} pairs.",),
        ("Check the rotary style and whether the checkpoint was permuted for it.",),
    ),
    "rope_base": Entry(
        "layout",
        "Wrong rotary base",
        "Rotation frequencies belong to another base.",
        ("The base is {base:.6g} instead of {base_reference:.6g}.",),
        ("Compare the rotary base in both configurations.",),
    ),
    "weight_transposed": Entry(
        "layout",
        "Weight used transposed",
        "The weight's axes are exchanged.",
        ("Seen in the {place}.",),
        ("Check the converter and the layout flag of the matrix product.",),
    ),
    "head_permuted": Entry(
        "layout",
        "Heads or rows in another order",
        "Blocks hold the right values in other places.",
        ("Order found: {order}.",),
        ("Check how query, key and value are packed and how heads are split over devices.",),
    ),
    "layout_reshape": Entry(
        "layout",
        "Axes merged without a transpose",
        "Both sides hold the same values in another order.",
        ("Reading the axes as {order} restores it.",),
        ("Check strides and contiguity before the reshape.",),
    ),
    "tile_tail": Entry(
        "layout",
        "Last tile not processed",
        "The last, partial tile of the reduction, the channels or the rows is missing.",
        (
            "It is the end of {axis}.",
            "From index {start} on, a multiple of {tile}.",
        ),
        ("Try a length that is a multiple of the tile: the error must vanish.",),
    ),
    "wrong_head": Entry(
        "layout",
        "A head reads another head's data",
        "Single heads are right for another head's input.",
        ("Head {head} uses the data of head {other}.",),
        ("Check the head index and the group size in the kernel.",),
    ),
    "gqa_repeat_order": Entry(
        "layout",
        "Key and value heads repeated in the wrong order",
        "Shared heads are tiled where they must be interleaved, or the reverse.",
        ("Order found: {order}.",),
        ("Check repeat against repeat-interleave in the grouped attention.",),
    ),
    "index_overflow": Entry(
        "layout",
        "Everything after a power-of-two index wrong",
        "Offsets wrap or are cut at a power of two.",
        ("First wrong flat index: {index}.",),
        ("Check the width of the index type for tensors of this size.",),
    ),
    "stale_weight": Entry(
        "layout",
        "Weight of an earlier step",
        "The operator still uses what the weight was before an update.",
        ("It equals the weight of step {step}.",),
        ("Check weight synchronisation and cached, packed or captured copies.",),
    ),
    # mask
    "pads_attended": Entry(
        "mask",
        "Padding attended",
        "Samples without padding are right; with padding, keys of padded tokens take part.",
        (),
        ("Check that the padding mask or sequence lengths reach the attention kernel.",),
    ),
    "causal_alignment": Entry(
        "mask",
        "Causal mask aligned to the wrong corner",
        "With fewer queries than keys the diagonal starts at the other corner.",
        (),
        ("Check top-left against bottom-right alignment in the kernel.",),
    ),
    "causal_off_by_one": Entry(
        "mask",
        "Causal diagonal off by one",
        "Queries see one key too many or too few.",
        ("The diagonal is shifted by {shift}.",),
        ("Check strict against non-strict comparison of positions.",),
    ),
    "window_off_by_one": Entry(
        "mask",
        "Sliding window of another length",
        "Tokens within the first window are right, later ones are off.",
        ("The window is {window} instead of {window_reference}.",),
        ("Check whether the window counts the token itself.",),
    ),
    "cache_block_reuse": Entry(
        "mask",
        "Cache block of another sequence or stale",
        "A range of tokens in the cache holds other values, aligned to a block.",
        ("Tokens {start} to {stop}.", "They equal {source}."),
        ("Check the block table and the release of cache blocks.",),
    ),
    "position_offset": Entry(
        "mask",
        "Positions shifted or reset",
        "The kernel rotates by positions other than those handed in.",
        ("Positions are off by {offset}.", "Positions restart every {period} tokens."),
        ("Check position ids in decode, with padding and with packed sequences.",),
    ),
    # quant
    "quant_scale_wrong": Entry(
        "quant",
        "Quantisation scale {variant}",
        "The product of the codes is right; it is scaled back wrongly.",
        ("The output is off by a factor of {factor:.5g}.",),
        ("Compare the scale with its inverse and with 1 in the dequantisation.",),
    ),
    "int8_saturation": Entry(
        "quant",
        "Quantisation scale too small: values clipped",
        "Codes pile up at the end of their range.",
        ("The scale is {ratio:.4g} of what the values need.", "{clipped} codes are clipped."),
        ("Check the calibration and the maximum from which the scale is taken.",),
    ),
    "int8_wrap": Entry(
        "quant",
        "Codes wrap around instead of saturating",
        "At the extremes the sign flips and the code is off by 256.",
        ("{count} codes wrapped.",),
        ("Clamp before converting to int8; check the conversion's rounding mode.",),
    ),
    "zero_point_off": Entry(
        "quant",
        "Zero point off",
        "Weights are off by a whole number of quantisation steps.",
        ("Off by {offset}.",),
        ("Check the convention of stored zero points (minus one, unsigned or signed).",),
    ),
    "scale_axis": Entry(
        "quant",
        "Scale applied along the wrong axis",
        "Ratios are a row effect times a column effect.",
        (),
        ("Check the axis of the per-channel scale, most of all for square weights.",),
    ),
    "nibble_order": Entry(
        "quant",
        "Nibbles unpacked in the wrong order",
        "Adjacent int4 values are exchanged.",
        (),
        ("Check the packing order of the checkpoint against the kernel's.",),
    ),
    "fp8_fnuz": Entry(
        "quant",
        "FNUZ and OCP encodings of fp8 confused",
        "The same bits mean half or double.",
        ("The factor is {factor:g}.",),
        ("Check which fp8 encoding the device uses and whether scales were converted.",),
    ),
    "stale_scale": Entry(
        "quant",
        "Scale of an earlier step",
        "The activation scale belongs to an earlier call.",
        ("It equals the scale of step {step}.",),
        ("Check when delayed scaling updates its history.",),
    ),
    # parallel
    "same_shard": Entry(
        "parallel",
        "Every rank holds the same shard",
        "All shards are equal where they must differ.",
        ("Shard {shard} of {shards} repeats.",),
        ("Check the rank used to cut the weight.",),
    ),
    "missing_reduce": Entry(
        "parallel",
        "A partial sum is missing",
        "The output is the sum of all but one part of the reduction.",
        ("Part {missing} of {shards} is missing.",),
        ("Check the all-reduce after this product and its process group.",),
    ),
    "bias_times_tp": Entry(
        "parallel",
        "Bias added once per rank",
        "Every token is off by the same whole multiple of the bias.",
        ("The bias counts {times} times.",),
        ("Add the bias after the reduction, or on one rank only.",),
    ),
    "bias_missing": Entry(
        "parallel",
        "Bias missing",
        "Every token is off by minus the bias.",
        ("Channels {start} to {stop} lack it.",),
        ("Check that the bias is loaded, sharded and handed to the kernel.",),
    ),
    # backward
    "grad_scale": Entry(
        "backward",
        "Gradient off by a constant factor",
        "The forward pass agrees; one gradient is scaled.",
        ("The factor is {factor:.5g}.", "It is {meaning}."),
        ("Check loss scaling, averaging over ranks and gradient accumulation.",),
    ),
    "zero_grad_missing": Entry(
        "backward",
        "Gradient contains that of the step before",
        "The gradient is the sum of its own and the previous step's.",
        ("It contains the gradient of step {step}.",),
        ("Check that gradients are cleared between steps.",),
    ),
    "attn_backward": Entry(
        "backward",
        "Attention backward wrong for queries and keys",
        "The gradient of the values is right, those of queries and keys are not.",
        ("Reproduced by {variant}.",),
        ("Check the row sum of P × dP in the backward kernel.",),
    ),
    # execution
    "uninitialised": Entry(
        "execution",
        "Part of the output never written",
        "A block holds values that have nothing to do with the expected ones.",
        ("The block is {block}.",),
        ("Fill buffers with NaN before the call and run the operator twice.",),
    ),
    "race_partial": Entry(
        "execution",
        "A tile read before it was complete",
        "A tile holds the sum of only part of the reduction.",
        ("The tile is {block}.", "It holds the first {part} of {length} terms."),
        ("Repeat with blocking launches; look for a missing wait or event.",),
    ),
    "stale_buffer": Entry(
        "execution",
        "Output of an earlier step returned",
        "The output equals that of an earlier step instead of its own.",
        ("It equals step {step}.",),
        ("Check graph replay and whether inputs are copied into the captured buffers.",),
    ),
    "bit_flip": Entry(
        "execution",
        "One bit of one element flipped",
        "One element is off, and its pattern differs in a single bit.",
        ("Flat index {index}, bit {bit} of {format}.",),
        ("Repeat the run: a hardware upset does not come back at the same place.",),
    ),
    # routing
    "expert_mapping": Entry(
        "routing",
        "Experts exchanged",
        "Tokens are computed with another expert's weights.",
        ("Expert {expert} behaves like expert {other}.",),
        ("Check the expert map of each rank and the order in the checkpoint.",),
    ),
    "router_bias_missing": Entry(
        "routing",
        "Router correction bias ignored",
        "The chosen experts are those of the plain scores.",
        (),
        ("Check that the correction bias is loaded and used for the selection only.",),
    ),
    # setup
    "different_inputs": Entry(
        "setup",
        "The runs were given different inputs",
        "Input ids or tensors differ before any operator; everything after differs for that.",
        ("{count} elements differ.",),
        ("Dump both runs again with the same inputs.",),
    ),
    "different_weights": Entry(
        "setup",
        "The runs start from different weights",
        "Stored weights differ in many modules.",
        ("{modules} modules differ.",),
        ("Load the same checkpoint on both sides; compare hashes.",),
    ),
    "different_mask": Entry(
        "setup",
        "The runs were given different masks",
        "Attention masks or positions differ before any operator.",
        ("{count} elements differ.",),
        ("Build the masks from the same lengths and padding side.",),
    ),
}

CATALOGUE: Mapping[str, Entry] = MappingProxyType(_TABLE)
