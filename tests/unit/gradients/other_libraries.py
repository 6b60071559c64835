"""Models of Hugging Face and adapters of peft, small, built from configurations: no download."""

import warnings
from collections.abc import Callable

import torch
from tests.unit.gradients.architectures import CLASSES, WORDS, Architecture, images, tokens
from torch import Tensor, nn

with warnings.catch_warnings():  # theirs, about each other
    warnings.simplefilter("ignore")
    import peft
    import transformers


class Words(nn.Module):
    """A model of sentences, given words alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor) -> Tensor:
        return self.model(input_ids=words, attention_mask=(words != 0).long()).logits


class Pictures(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor) -> Tensor:
        return self.model(pixel_values=pixels).logits


def distilbert() -> nn.Module:
    config = transformers.DistilBertConfig(  # type: ignore[call-arg]
        vocab_size=WORDS, max_position_embeddings=8, n_layers=2, n_heads=2, dim=8, hidden_dim=16,
        num_labels=CLASSES, pad_token_id=0,
    )  # fmt: skip
    return transformers.DistilBertForSequenceClassification(config)


def gpt2() -> nn.Module:
    config = transformers.GPT2Config(  # type: ignore[call-arg]
        vocab_size=WORDS, n_positions=8, n_layer=2, n_head=2, n_embd=8, num_labels=CLASSES,
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return transformers.GPT2ForSequenceClassification(config)


def vit() -> nn.Module:
    config = transformers.ViTConfig(  # type: ignore[call-arg]
        image_size=8, patch_size=4, num_channels=4, num_hidden_layers=2, num_attention_heads=2,
        hidden_size=8, intermediate_size=16, num_labels=CLASSES, hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )  # fmt: skip
    return Pictures(transformers.ViTForImageClassification(config))


def adapted(make: Callable[[], nn.Module], *targets: str, transposed: bool = False) -> nn.Module:
    """Freeze a model and give it adapters (LoRA)."""
    config = peft.LoraConfig(
        r=2, target_modules=list(targets), lora_dropout=0.1, fan_in_fan_out=transposed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peft.get_peft_model(make(), config)


OTHERS: dict[str, Architecture] = {
    "distilbert": (lambda: Words(distilbert()), tokens),
    "gpt2": (lambda: Words(gpt2()), tokens),
    "vit": (vit, images),
    "lora on distilbert": (lambda: Words(adapted(distilbert, "q_lin", "v_lin")), tokens),
    "lora on gpt2": (lambda: Words(adapted(gpt2, "c_attn", transposed=True)), tokens),
}


def one_step_on(model: nn.Module) -> None:
    """Move adapters away from zero, where half of their gradients are."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
