"""What a spec names beside a method's parts: optimizer, schedule, augmentations, model, numbers."""
